import type { MultitaskStrategy, RunStatus } from "../../src/agent-server/contract/records.ts";
import type { Answer } from "./api.ts";
import type { Kind } from "./commands.ts";

/** When something was asked for and when it was answered, on the clock of the sequence: in between it happened, if at all. */
export interface Span {
  issued: number;
  /** Infinity while there is no answer. */
  answered: number;
}

/** A run that was asked for. */
export interface RunNote extends Span {
  token: string;
  kind: Kind;
  /** How it starts: with an input of its own, from where the thread stands, or with an answer to its question. */
  mode: "input" | "continue" | "resume";
  graph_id: string;
  strategy: MultitaskStrategy;
  /** It may start only long after the test. */
  delayed: boolean;
  run_id?: string;
  /** The answer to its creation. */
  created?: WireRun;
  /** From here on it is known to have ended. */
  ended: number;
  /** The process was killed before its end was known, so it may have been begun again. */
  retried?: boolean;
  /** What all answers to join and wait said; they must be the same. */
  outputs: Answer[];
  /** Accepted cancels. `sure` is false when the answer was lost, or the client only went away. */
  cancels: (Span & { action: "interrupt" | "rollback"; sure: boolean })[];
}

/** A state update, or a deletion of the run with this token. `sure` is false when the answer was lost. */
export interface ChangeNote extends Span {
  kind: "update" | "delete";
  token: string;
  sure: boolean;
}

/** What the clients know of a thread. */
export interface ThreadNotes {
  thread_id: string;
  /** Its metadata named a graph from the start. */
  named: boolean;
  runs: RunNote[];
  changes: ChangeNote[];
  /** Set once a client asked for its deletion. */
  deleted?: Span & { sure: boolean };
}

/** A run as the wire shows it. */
export interface WireRun {
  run_id: string;
  status: RunStatus;
  created_at: string;
  updated_at: string;
  metadata: { token?: string };
}

/** What was answered or found is not what the contract allows. */
export class Breach extends Error {}

export const before = (a: Span, b: Span): boolean => a.answered < b.issued;
