import type { IncomingMessage } from "node:http";

/** Something that executes runs: a server over HTTP, or LangGraph in this very process. Measurements know only this. */
export interface Target extends AsyncDisposable {
  /** From the start of its process until it could take work: the first 200 of GET /ok, or all graphs imported. In ms. */
  readonly ready_ms: number;
  /** From the start of its process until now, in ms. */
  age_ms(): number;
  /** Runs a graph on a thread, made when there is none yet, and waits for its final values. */
  run(graph: string, input: object, thread_id: string): Promise<State>;
  /** Runs a graph without a thread that anybody keeps, and waits for its final values. */
  runStateless(graph: string, input: object): Promise<State>;
  /** Runs a graph without a thread and takes its custom events as they come. */
  streamCustom(graph: string, input: object): Promise<StreamTimes>;
  /** Of the target's process; undefined where the system has no /proc. */
  usage(): Usage | undefined;
  /** For what only servers do; undefined where there is none. */
  readonly server?: Server;
}

/** A server's HTTP interface. */
export interface Server {
  readonly port: number;
  /** Sends a request and reads its answer. The status is to be 200 unless another is given. */
  ask(method: string, path: string, asked?: { body?: object | Uint8Array; status?: number }): Promise<string>;
  /** The same for an answer that is read as it comes. */
  open(method: string, path: string, asked?: { body?: object; status?: number }): Promise<IncomingMessage>;
  /** Stops it in good order and starts it again on the same data; resolves when it answers. The port changes. */
  restart(): Promise<void>;
}

/** @throws Error when the target is no server; measurements that ask for one leave the others out by `without` */
export function serverOf({ server }: Target): Server {
  if (!server) throw new Error("This measurement needs a server.");
  return server;
}

export type State = Record<string, unknown>;

/** When the events of one stream came; times are on the clock of performance.now(), in ms. */
export interface StreamTimes {
  asked_at: number;
  first_at: number;
  last_at: number;
  /** All events. */
  events: number;
  /** Events that came later than the first; those that the same read brought are not among them. */
  events_after_first: number;
}

export interface Usage {
  /** User and system time of all threads since the start, in ms. */
  cpu_ms: number;
  /** Resident memory, in MB of 1,000,000 bytes. */
  rss_mb: number;
}
