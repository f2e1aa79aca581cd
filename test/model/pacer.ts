import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Unanswered } from "./api.ts";
import type { Command, Row } from "./commands.ts";
import type { Ledger, Target } from "./ledger.ts";
import type { RunNote, ThreadNotes, WireRun } from "./notes.ts";

type Pace = Exclude<Command["name"], Row | "await a failure" | "await a timeout" | "take an answer back">;

/** Moves the runs of a sequence on, so that commands meet them in every state, and in the end to their ends. */
export class Pacer {
  readonly #ledger: Ledger;
  readonly #doors: string;
  readonly #joins: Promise<void>[] = [];

  constructor(ledger: Ledger, doors: string) {
    this.#ledger = ledger;
    this.#doors = doors;
  }

  /** What is waited for are ends that will come, whatever the others do: so no two clients can wait for each other. */
  async pace(name: Pace): Promise<void> {
    const { thread } = this.#ledger;
    const runs = (await this.#ledger.list(thread)) ?? [];
    if (name === "await all ends") {
      for (const note of thread.runs) this.#openDoor(note);
      const active = runs.filter(isActive).map((run) => this.#ledger.target(thread, run));
      await Promise.all(active.filter(({ note }) => !note?.delayed).map((target) => this.join(target)));
      return;
    }
    const running = runs.find(({ status }) => status === "running");
    if (!running) return;
    const target = this.#ledger.target(thread, running);
    switch (name) {
      case "await a begin":
        return this.#firstStep(target.path);
      case "open a door":
        return this.#openDoor(target.note);
      case "await an end":
        this.#openDoor(target.note);
        return this.join(target);
    }
  }

  #openDoor(note: RunNote | undefined): void {
    if (note && note.kind !== "endless") writeFileSync(join(this.#doors, note.token), "");
  }

  /** Resolves with the end of the run. Whoever does not wait need not care: the end of the sequence does. */
  join({ note, path, name, thread }: Target): Promise<void> {
    const span = this.#ledger.span();
    const allowed = note ? [200, 404] : [404];
    const joined = this.#ledger.ask(span, `join ${name}`, allowed, thread, "GET", `${path}/join`).then(
      (answer) => {
        this.#ledger.ended(note, span);
        // After a second the status is out: then the body says that the run is gone.
        const isDeleted = answer.body.__error__?.error === "ApiError";
        note?.outputs.push(isDeleted ? { ...answer, status: 404 } : answer);
        if (answer.text !== note?.outputs[0]?.text || note.outputs.length === 1)
          this.#ledger.say(span, `join ${name} said ${answer.text.slice(0, 160)}`);
      },
      (error) => {
        if (!(error instanceof Unanswered)) throw error;
      },
    );
    joined.catch(() => undefined);
    this.#joins.push(joined);
    return joined;
  }

  /** Reads a run's events until one of a step comes, or the run is over. */
  async #firstStep(path: string): Promise<void> {
    const headers = { "Last-Event-ID": "-1" };
    const response = await this.#ledger.api
      .open("GET", `${path}/stream`, undefined, undefined, headers)
      .catch(() => {});
    const reader = response?.body?.getReader();
    const decoder = new TextDecoder();
    for (let text = ""; reader && !text.includes("event: values"); ) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done) return;
      text += decoder.decode(value, { stream: true });
    }
    await reader?.cancel().catch(() => undefined);
  }

  /** Opens all doors, takes back what waits for its time, and hears how each run has ended. */
  async rest(): Promise<void> {
    writeFileSync(join(this.#doors, "all"), "");
    for (let active = -1; active !== 0; ) active = await this.#restOnce().catch(ifUnanswered);
  }

  async #restOnce(): Promise<number> {
    let active = 0;
    for (const thread of this.#ledger.threads) active += await this.#restThread(thread);
    await Promise.all(this.#joins);
    return active;
  }

  /** Also a thread that was to be deleted: when nobody heard of it, that may not have happened. */
  async #restThread(thread: ThreadNotes): Promise<number> {
    const runs = (await this.#ledger.list(thread)) ?? [];
    const active = runs.filter(isActive);
    for (const run of active) {
      const target = this.#ledger.target(thread, run);
      if (target.note?.delayed) await this.#takeBack(target, target.note);
    }
    // Also those that have ended long since: each has an output of its own, for ever.
    for (const run of runs) void this.join(this.#ledger.target(thread, run));
    return active.length;
  }

  async #takeBack({ path, name, thread }: Target, note: RunNote): Promise<void> {
    const span = { ...this.#ledger.span(), action: "interrupt", sure: true } as const;
    note.cancels.push(span);
    const allowed = [202, 404, 409];
    const answer = await this.#ledger.ask(span, `take back ${name}`, allowed, thread, "POST", `${path}/cancel`);
    if (answer.status >= 300) note.cancels.splice(note.cancels.indexOf(span), 1);
  }
}

const isActive = ({ status }: WireRun) => status === "pending" || status === "running";

function ifUnanswered(error: unknown): number {
  if (error instanceof Unanswered) return -1;
  throw error;
}
