import { appendFileSync } from "node:fs";

/** Steps of each run (test/graphs/faults). */
export const STEPS = 8;

export type Fault =
  | "frozen"
  | "killed"
  | "swallowed"
  | "slow network"
  | "restarted"
  | "failed over"
  | "few connections"
  | "drained"
  | "poison";

/** What happened; times in ms since the epoch, of the one machine. */
export type Entry = { t: number } & (
  | { kind: "begin"; seed: number; lease_ms: number; load: number }
  | { kind: "fault"; fault: Fault; pid?: number }
  | { kind: "over"; fault: Fault; pid?: number }
  /** The server has answered the creation with 200, and before that, in the same thread, that of `after`. */
  | { kind: "accepted"; run_id: string; after: string | undefined; fault: Fault | undefined }
  /** A step began: written by the graph. */
  | { kind: "step"; run_id: string; step: number; pid: number }
  /** A client has been told the output. */
  | { kind: "received"; run_id: string; steps: unknown }
  /** A request during a fault; status 0: no answer. */
  | {
      kind: "probe";
      fault: Fault;
      port: number;
      path: string;
      status: number;
      ms: number;
      retry?: boolean;
      text?: string;
    }
  /** How the run stands in the database at the end. */
  | {
      kind: "row";
      run_id: string;
      status: string;
      attempt: number;
      crashes: number;
      epoch: number;
      graph_id: string;
      /** IDs of its first and last checkpoint, which are ordered by time. */
      first: string | null;
      last: string | null;
      /** The data of its last event "error". */
      error: string | null;
    }
  /** A rule of test/crash/invariants.ts that the rows break at the end. */
  | { kind: "violation"; rule: string; rows: unknown[] }
);

type Unstamped<E> = E extends Entry ? Omit<E, "t"> : never;

/** Notes an entry with the time of now. */
export const noteIn =
  (file: string) =>
  (entry: Unstamped<Entry>): void =>
    appendFileSync(file, `${JSON.stringify({ t: Date.now(), ...entry })}\n`);

export type Note = ReturnType<typeof noteIn>;
