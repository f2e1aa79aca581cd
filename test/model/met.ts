import { ROWS, type Row } from "./commands.ts";

export const STATES = ["none", "pending", "running", "success", "error", "interrupted", "timeout"] as const;
export type State = (typeof STATES)[number];

/** Pairs that cannot occur, and why. */
export const IMPOSSIBLE: Partial<Record<Row, Partial<Record<State, string>>>> = {};

/** How often each command met a run in each state. */
export class Met {
  readonly #counts = new Map<string, number>();

  add(row: Row, state: string): void {
    const pair = `${row} / ${state}`;
    this.#counts.set(pair, (this.#counts.get(pair) ?? 0) + 1);
  }

  count = (row: Row, state: State): number => this.#counts.get(`${row} / ${state}`) ?? 0;

  /** Pairs that should have occurred and did not. */
  missing(rows: readonly Row[]): string[] {
    return rows.flatMap((row) =>
      STATES.filter((state) => this.count(row, state) === 0 && !IMPOSSIBLE[row]?.[state]).map(
        (state) => `${row} / ${state}`,
      ),
    );
  }

  toString(): string {
    const line = (head: string, cells: readonly (string | number)[]) =>
      head.padEnd(22) + cells.map((cell) => String(cell).padStart(12)).join("");
    const rows = ROWS.map((row) =>
      line(
        row,
        STATES.map((state) => this.count(row, state)),
      ),
    );
    return [line("", STATES), ...rows].join("\n");
  }
}
