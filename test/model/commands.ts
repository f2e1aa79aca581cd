import fc from "fast-check";

/** What clients do to a thread and its runs. A row of the table of met states each. */
export const ROWS = [
  "create enqueue",
  "create reject",
  "create interrupt",
  "create rollback",
  "resume",
  "continue",
  "cancel interrupt",
  "cancel interrupt wait",
  "cancel rollback",
  "cancel rollback wait",
  "bulk interrupt",
  "bulk rollback",
  "update",
  "delete run",
  "delete thread",
  "join",
  "disconnect",
  "create, disconnect",
] as const;
export type Row = (typeof ROWS)[number];

/** What moves the runs on, so that the others meet them in every state. */
const PACES = [
  "open a door",
  "await a begin",
  "await an end",
  "await all ends",
  "await a failure",
  "await a timeout",
  "take an answer back",
] as const;
type Pace = (typeof PACES)[number];

/** Kinds of runs; test/graphs/model/graph.ts says what they do. An `endless` one is a slow one whose door stays shut. */
export const KINDS = ["chain", "slow", "unabortable", "nested", "gate", "fails", "endless"] as const;
export type Kind = (typeof KINDS)[number];

export const CLIENTS = 4;

/** A command names no run: which one it is about is chosen when it is carried out, among those that are there then. */
export interface Command {
  client: number;
  /** Turns of the event loop that pass before it: they shuffle what the clients do at the same time. */
  turns: number;
  name: Row | Pace;
  kind: Kind;
  /** What is left to choose: a state, a run in it, a strategy. */
  pick: number;
}

const weighted = (weights: Partial<Record<Command["name"], number>>, names: readonly Command["name"][]) =>
  fc.oneof(...names.map((name) => ({ weight: weights[name] ?? 4, arbitrary: fc.constant(name) })));

export const command: fc.Arbitrary<Command> = fc.record({
  client: fc.nat(CLIENTS - 1),
  turns: fc.nat(4),
  name: weighted(
    {
      "create enqueue": 14,
      resume: 6,
      "delete thread": 3,
      "open a door": 6,
      "await a begin": 12,
      "await an end": 8,
      "await all ends": 24,
      "await a failure": 6,
      "await a timeout": 4,
      "take an answer back": 3,
    },
    [...ROWS, ...PACES],
  ),
  kind: fc.oneof(
    ...KINDS.map((kind) => ({
      weight: { slow: 4, gate: 5, nested: 3, endless: 1 }[kind as string] ?? 2,
      arbitrary: fc.constant(kind),
    })),
  ),
  pick: fc.nat(999_999),
});

/** The sequences of a seed; each can be made again by its own number. */
export const sequenceOf = (seed: number, n: number): Command[] => {
  const sequence = fc.array(command, { minLength: 30, maxLength: 70 });
  return fc.sample(sequence, { seed: seed * 100_003 + n, numRuns: 1 })[0] as Command[];
};
