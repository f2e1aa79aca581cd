import { mkdirSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { MultitaskStrategy } from "../../src/agent-server/contract/records.ts";
import { type Answer, type Api, Unanswered } from "./api.ts";
import { CLIENTS, type Command, type Row } from "./commands.ts";
import { Ledger, type Target } from "./ledger.ts";
import type { Met } from "./met.ts";
import { Breach, type RunNote } from "./notes.ts";
import { Pacer } from "./pacer.ts";

export interface Setting {
  api: Api;
  met: Met;
  /** A folder for the doors of this sequence. */
  doors: string;
  /** Whether the service has POST /runs/cancel. */
  bulk: boolean;
}

type CancelRow = Extract<Row, `cancel ${string}`>;

const ABOUT_THREADS = new Set<Command["name"]>([
  "create reject",
  "create interrupt",
  "create rollback",
  "create, disconnect",
  "resume",
  "continue",
  "update",
  "delete thread",
]);

const FIRST_COME = { mode: "input", strategy: "enqueue" } as const;

/** Clients that carry out their commands at the same time, on one thread. */
export class Sequence {
  readonly ledger: Ledger;
  readonly #pacer: Pacer;
  readonly #setting: Setting;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.ledger = new Ledger(setting.api, setting.met);
    this.#pacer = new Pacer(this.ledger, setting.doors);
    mkdirSync(setting.doors, { recursive: true });
  }

  async run(commands: readonly Command[]): Promise<void> {
    await this.ledger.newThread(commands.length % 2 === 0);
    const clients = Array.from({ length: CLIENTS }, (_, client) => commands.filter((c) => c.client === client));
    const ends = await Promise.allSettled(clients.map((own) => this.#client(own)));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    await this.#pacer.rest();
  }

  async #client(commands: readonly Command[]): Promise<void> {
    for (const command of commands) {
      for (let turn = 0; turn < command.turns; turn++) await nextTurn();
      try {
        // Otherwise commands about the thread would hardly ever find it at rest.
        if (ABOUT_THREADS.has(command.name) && Math.floor(command.pick / 1000) % 4 === 0)
          await this.#pacer.pace("await all ends");
        await this.#carryOut(command);
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error;
      }
    }
  }

  async #carryOut({ name, kind, pick }: Command): Promise<void> {
    switch (name) {
      case "create enqueue":
      case "create reject":
      case "create interrupt":
      case "create rollback":
        return this.#create(name, { kind, strategy: name.slice(7) as MultitaskStrategy, mode: "input" }, pick);
      case "resume":
      case "continue": {
        const strategy = (["enqueue", "enqueue", "reject", "interrupt", "rollback"] as const)[pick % 5] ?? "enqueue";
        return this.#create(name, { kind, strategy, mode: name }, pick);
      }
      case "create, disconnect":
        return this.#abandon(kind, pick);
      case "cancel interrupt":
      case "cancel interrupt wait":
      case "cancel rollback":
      case "cancel rollback wait":
        return this.#cancel(name, pick);
      case "bulk interrupt":
      case "bulk rollback":
        return this.#setting.bulk ? this.#bulk(name, pick) : undefined;
      case "update":
        return this.#update();
      case "delete run":
        return this.#deleteRun(pick);
      case "delete thread":
        return this.#deleteThread(pick);
      case "join":
        return void this.#pacer.join(await this.ledger.choose("join", pick));
      case "disconnect":
        return this.#disconnect(pick);
      case "await a failure":
      case "await a timeout":
        await this.#pacer.pace("await all ends");
        await this.#create(undefined, { kind: name === "await a failure" ? "fails" : "endless", ...FIRST_COME }, 0);
        return this.#pacer.pace("await all ends");
      case "take an answer back":
        return this.#takeAnswerBack();
      default:
        return this.#pacer.pace(name);
    }
  }

  /** Runs that write on the checkpoint of another one, which chance alone would hardly bring together. */
  async #takeAnswerBack(): Promise<void> {
    await this.#pacer.pace("await all ends");
    await this.#create(undefined, { ...FIRST_COME, kind: "gate" }, 0);
    await this.#pacer.pace("await all ends");
    await this.#create(undefined, { ...FIRST_COME, kind: "gate", mode: "resume" }, 0);
    await this.#pacer.pace("await all ends");
    await this.#create(undefined, { ...FIRST_COME, kind: "gate", mode: "resume" }, 0);
    await this.#pacer.pace("await a begin");
    const running = (await this.ledger.list(this.ledger.thread))?.find(({ status }) => status === "running");
    if (running) await this.#cancelTarget("cancel rollback wait", this.ledger.target(this.ledger.thread, running));
    await this.#create(undefined, { ...FIRST_COME, kind: "gate", mode: "continue" }, 0);
  }

  #bodyOf({ token, kind, mode, graph_id, strategy }: RunNote, more: object = {}): object {
    const how = {
      input: {
        input: {
          items: [`${token}:in`],
          token,
          kind: kind === "endless" ? "slow" : kind,
          doors: this.#setting.doors,
        },
      },
      continue: { input: null },
      resume: { command: { resume: token } },
    }[mode];
    return { assistant_id: graph_id, multitask_strategy: strategy, metadata: { token }, ...how, ...more };
  }

  async #create(row: Row | undefined, how: Pick<RunNote, "kind" | "mode" | "strategy">, pick: number): Promise<void> {
    if (row) await this.ledger.meetThread(row);
    const { thread } = this.ledger;
    // One in ten waits for a time that does not come.
    const delayed = pick % 10 === 9;
    const note = this.ledger.newRun(thread, { ...how, delayed, graph_id: pick % 3 === 0 ? "other" : "work" });
    const what = `${row ?? "create"} ${note.token} ${note.kind} ${note.strategy}${delayed ? " delayed" : ""}`;
    const body = this.#bodyOf(note, delayed ? { after_seconds: 3600 } : {});
    const allowed = how.strategy === "reject" ? [200, 409] : [200];
    const path = `/threads/${thread.thread_id}/runs`;
    const answer = await this.ledger.ask(note, what, allowed, thread, "POST", path, body);
    if (answer.status === 200) note.created = answer.body;
    if (answer.status === 200) note.run_id = answer.body.run_id;
    else thread.runs.splice(thread.runs.indexOf(note), 1);
  }

  /** Starts a run, wants its output or its events, and hangs up. Afterwards the run may be stopped, or not. */
  async #abandon(kind: RunNote["kind"], pick: number): Promise<void> {
    const row = "create, disconnect";
    await this.ledger.meetThread(row);
    const { thread, api } = this.ledger;
    const how = { kind, mode: "input", strategy: "enqueue", graph_id: "work", delayed: false } as const;
    const note = this.ledger.newRun(thread, how);
    note.cancels.push({ ...this.ledger.span(), action: "interrupt", sure: false });
    const hangUp = new AbortController();
    const path = `/threads/${thread.thread_id}/runs/${pick % 2 === 0 ? "stream" : "wait"}`;
    let over = false;
    const asked = api
      .open("POST", path, this.#bodyOf(note, { on_disconnect: "cancel" }), hangUp.signal)
      .then(async (response) => {
        over = true;
        await response.body?.cancel();
      })
      .catch(() => {
        over = true;
      });
    // Until others see it, so that it is accepted, or until the request is over.
    for (let wasOver = false; note.run_id === undefined && !wasOver; ) {
      wasOver = over;
      await nextTurn();
      const run = (await this.ledger.list(thread))?.find(({ metadata }) => metadata.token === note.token);
      if (run) this.ledger.noteOf(thread, run);
    }
    hangUp.abort();
    await asked;
    note.answered = this.ledger.now();
    this.ledger.say(note, `${row} ${note.token} ${kind} ${note.run_id ? "" : "unseen"}`);
  }

  async #cancel(row: CancelRow, pick: number): Promise<void> {
    await this.#cancelTarget(row, await this.ledger.choose(row, pick));
  }

  async #cancelTarget(row: CancelRow, { note, name, path, thread }: Target): Promise<void> {
    const action = row.startsWith("cancel rollback") ? "rollback" : "interrupt";
    const wait = row.endsWith("wait");
    const span = { ...this.ledger.span(), action, sure: true } as const;
    note?.cancels.push(span);
    const query = `?action=${action}&wait=${wait ? 1 : 0}`;
    const allowed = note ? [wait ? 204 : 202, 404, 409] : [404];
    const answer = await this.ledger.ask(span, `${row} ${name}`, allowed, thread, "POST", `${path}/cancel${query}`);
    if (wait) this.ledger.ended(note, span);
    if (answer.status >= 300) this.#refused(note, span, answer);
  }

  async #bulk(row: "bulk interrupt" | "bulk rollback", pick: number): Promise<void> {
    const { note, name, run_id, thread } = await this.ledger.choose(row, pick);
    const action = row === "bulk interrupt" ? "interrupt" : "rollback";
    const span = { ...this.ledger.span(), action, sure: true } as const;
    note?.cancels.push(span);
    const body = { thread_id: thread.thread_id, run_ids: [run_id] };
    const path = `/runs/cancel?action=${action}`;
    const answer = await this.ledger.ask(
      span,
      `${row} ${name}`,
      note ? [204, 404, 409] : [404],
      thread,
      "POST",
      path,
      body,
    );
    if (answer.status >= 300) this.#refused(note, span, answer);
  }

  /** A cancel that was refused did nothing; 409 says besides that the run had ended. */
  #refused(note: RunNote | undefined, span: RunNote["cancels"][number], { status }: Answer): void {
    if (!note) return;
    note.cancels.splice(note.cancels.indexOf(span), 1);
    if (status === 409) this.ledger.ended(note, span);
  }

  async #update(): Promise<void> {
    await this.ledger.meetThread("update");
    const { thread } = this.ledger;
    const change = this.ledger.newChange(thread, "update", this.ledger.token("u"));
    const body = { values: { items: [change.token] }, as_node: "c" };
    const path = `/threads/${thread.thread_id}/state`;
    const allowed = thread.named ? [200, 409] : [200, 400, 409];
    const answer = await this.ledger.ask(change, `update ${change.token}`, allowed, thread, "POST", path, body);
    if (answer.status !== 200) thread.changes.splice(thread.changes.indexOf(change), 1);
  }

  async #deleteRun(pick: number): Promise<void> {
    const { thread, note, name, path } = await this.ledger.choose("delete run", pick);
    const change = this.ledger.newChange(thread, "delete", note?.token ?? "nobody");
    const allowed = note ? [204, 404, 409] : [404];
    const answer = await this.ledger.ask(change, `delete ${name}`, allowed, thread, "DELETE", path);
    // Refused while the run itself, or another that builds on it, is at work.
    if (answer.status === 409 && thread.runs.every(({ ended }) => ended < change.issued))
      throw new Breach(`${name} and all others had ended already.`);
    if (answer.status === 204) this.ledger.ended(note, change);
    else thread.changes.splice(thread.changes.indexOf(change), 1);
  }

  async #deleteThread(pick: number): Promise<void> {
    await this.ledger.meetThread("delete thread");
    const { thread } = this.ledger;
    if (thread.deleted) return;
    thread.deleted = { ...this.ledger.span(), sure: true };
    const path = `/threads/${thread.thread_id}`;
    const asked = this.ledger.ask(thread.deleted, "delete thread", [204], thread, "DELETE", path);
    await Promise.allSettled([asked, this.ledger.newThread(pick % 2 === 0)]);
    await asked;
  }

  async #disconnect(pick: number): Promise<void> {
    const { note, path, name } = await this.ledger.choose("disconnect", pick);
    const hangUp = new AbortController();
    const span = this.ledger.span();
    const response = await this.ledger.api
      .open("GET", `${path}/stream`, undefined, hangUp.signal)
      .catch(() => undefined);
    hangUp.abort();
    await response?.body?.cancel().catch(() => undefined);
    span.answered = this.ledger.now();
    this.ledger.say(span, `disconnect ${name}: ${response?.status}`);
    if (response && !(note ? [200, 404] : [404]).includes(response.status))
      throw new Breach(`A stream was answered ${response.status}.`);
  }
}
