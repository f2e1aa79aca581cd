import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../support/random.ts";
import type { Fault, Note } from "./history.ts";

/** A server that is frozen takes connections and says nothing: another one is asked after this. */
const ANSWER_MS = 3_000;
const AGAIN_MS = 100;
/** A run takes two seconds without a fault; after this it is asked for elsewhere. */
const JOIN_MS = 20_000;
/** No run takes longer, whatever happens to its process. */
const RUN_MS = 600_000;

export interface Options {
  urls: readonly string[];
  /** The file of the history, which graphs write to. */
  history: string;
  note: Note;
  random: Random;
}

/** Runs of different clients share threads. */
const THREADS = 1_000;
const RUNS_AT_ONCE = 2;

/** Clients that create runs and wait for them, each time at another server; what has no answer is asked elsewhere. */
export class Clients {
  readonly #options: Options;
  readonly #threads = Array.from({ length: THREADS }, () => randomUUID());
  #working: Promise<void>[] = [];
  #stopped = false;
  fault: Fault | undefined;
  /** A creation without an answer is repeated, and accepted twice if it was only late. */
  answer_ms = ANSWER_MS;

  constructor(options: Options) {
    this.#options = options;
  }

  start(count: number): void {
    this.#stopped = false;
    this.#working = Array.from({ length: count }, async () => {
      while (!this.#stopped) await this.#inOneThread();
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#working);
  }

  /** Creates runs of a thread one after the other, which wait for each other in the queue, and then waits for the end of all. */
  async #inOneThread(): Promise<void> {
    const thread_id = this.#options.random.pick(this.#threads);
    const run_ids: string[] = [];
    while (run_ids.length < RUNS_AT_ONCE && !this.#stopped) {
      const run_id = await this.#create(thread_id, "ticks", { steps: [] }, run_ids.at(-1));
      if (run_id !== undefined) run_ids.push(run_id);
    }
    for (const run_id of run_ids) await this.#receive(thread_id, run_id);
  }

  /** Creates a run in a new thread, and waits for its end. False: the creation had no answer, which acknowledges nothing. */
  async runOne(assistant_id: string, input: object = {}): Promise<boolean> {
    const thread_id = randomUUID();
    const run_id = await this.#create(thread_id, assistant_id, { steps: [], ...input });
    if (run_id !== undefined) await this.#receive(thread_id, run_id);
    return run_id !== undefined;
  }

  /** @param after a run of the thread that was accepted before */
  async #create(thread_id: string, assistant_id: string, input: object, after?: string): Promise<string | undefined> {
    const { note, history } = this.#options;
    const created = await this.#ask(`/threads/${thread_id}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ assistant_id, input: { history, ...input }, if_not_exists: "create" }),
    });
    if (created?.status !== 200) {
      await pause(AGAIN_MS);
      return undefined;
    }
    const { run_id } = JSON.parse(created.text) as { run_id: string };
    note({ kind: "accepted", run_id, after, fault: this.fault });
    return run_id;
  }

  async #receive(thread_id: string, run_id: string): Promise<void> {
    const { note } = this.#options;
    const end = performance.now() + RUN_MS;
    while (performance.now() < end) {
      const joined = await this.#ask(`/threads/${thread_id}/runs/${run_id}/join`, {}, JOIN_MS);
      if (joined?.status === 200) {
        note({ kind: "received", run_id, steps: (JSON.parse(joined.text) as { steps?: unknown }).steps });
        return;
      }
      await pause(AGAIN_MS);
    }
  }

  /** Undefined: no answer. */
  async #ask(
    path: string,
    init: RequestInit,
    body_ms = ANSWER_MS,
  ): Promise<{ status: number; text: string } | undefined> {
    const giveUp = new AbortController();
    let timer = setTimeout(() => giveUp.abort(), this.answer_ms);
    try {
      const answer = await fetch(this.#options.random.pick(this.#options.urls) + path, {
        ...init,
        signal: giveUp.signal,
      });
      clearTimeout(timer);
      timer = setTimeout(() => giveUp.abort(), body_ms);
      return { status: answer.status, text: await answer.text() };
    } catch {
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}
