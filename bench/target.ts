import type { IncomingMessage } from "node:http";

/** An executor of runs: a server over HTTP, or LangGraph in this process. Measurements use only this interface. */
export interface Target extends AsyncDisposable {
  /** Time from the spawn of the process to the first 200 of GET /ok, or to the import of all graphs; in ms. */
  readonly ready_ms: number;
  /** Time since the spawn of the process, in ms. */
  age_ms(): number;
  /** Runs a graph on a thread, which is created if needed, and waits for the final values. */
  run(graph: string, input: object, thread_id: string): Promise<State>;
  /** Runs a graph on a temporary thread and waits for the final values. */
  runStateless(graph: string, input: object): Promise<State>;
  /** Runs a graph on a temporary thread and receives its custom events. */
  streamCustom(graph: string, input: object): Promise<StreamTimes>;
  /** Usage of the process; undefined on systems without /proc. */
  usage(): Usage | undefined;
  /** Undefined for the floor. */
  readonly server?: Server;
}

/** A server's HTTP interface. */
export interface Server {
  readonly port: number;
  /** Sends a request and returns the body. Expects status 200 by default. */
  send(method: string, path: string, options?: { body?: object | Uint8Array; status?: number }): Promise<string>;
  /** Sends a request and returns the unread response. */
  open(method: string, path: string, options?: { body?: object; status?: number }): Promise<IncomingMessage>;
  /** Executes SQL on the database of the experiments. */
  execute(statement: string): Promise<void>;
  /** Shuts the server down and starts it on the same data. Resolves when it answers. The port changes. */
  restart(): Promise<void>;
}

/** @throws Error when the target is not a server; measurements exclude these targets with `without` */
export function serverOf({ server }: Target): Server {
  if (!server) throw new Error("This measurement needs a server.");
  return server;
}

export type State = Record<string, unknown>;

/** Arrival times of the events of a stream, in ms on the clock of performance.now(). */
export interface StreamTimes {
  sent_at: number;
  first_at: number;
  last_at: number;
  /** Number of events. */
  events: number;
  /** Events after the first read. */
  events_after_first: number;
}

export interface Usage {
  /** User and system time of all threads since the start, in ms. */
  cpu_ms: number;
  /** Resident memory, in MB of 1,000,000 bytes. */
  rss_mb: number;
}
