import { randomUUID } from "node:crypto";
import { type Answer, type Api, Unanswered } from "./api.ts";
import type { Row } from "./commands.ts";
import type { Met } from "./met.ts";
import { Breach, type ChangeNote, type RunNote, type Span, type ThreadNotes, type WireRun } from "./notes.ts";

const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";

/** A run that a command is about. */
export interface Target {
  thread: ThreadNotes;
  /** Absent: nobody has this id. */
  note?: RunNote;
  name: string;
  run_id: string;
  path: string;
}

/** What the clients of a sequence know, on a clock of their own, and how they ask. */
export class Ledger {
  readonly threads: ThreadNotes[] = [];
  /** What happened, for whoever has to find out why it was wrong. */
  readonly log: string[] = [];
  readonly api: Api;
  readonly #met: Met;
  #clock = 0;
  #tokens = 0;

  constructor(api: Api, met: Met) {
    this.api = api;
    this.#met = met;
  }

  /** The thread that commands are about; another one follows when it is deleted. */
  get thread(): ThreadNotes {
    return this.threads.at(-1) as ThreadNotes;
  }

  async newThread(named: boolean): Promise<void> {
    const thread_id = randomUUID();
    const body = { thread_id, if_exists: "do_nothing", metadata: named ? { graph_id: "work" } : {} };
    for (let done = false; !done; ) {
      done = await this.api.send("POST", "/threads", body).then(
        () => true,
        (error) => {
          if (!(error instanceof Unanswered)) throw error;
          return false;
        },
      );
    }
    this.threads.push({ thread_id, named, runs: [], changes: [] });
  }

  token = (letter: string): string => `${letter}${++this.#tokens}`;
  now = (): number => ++this.#clock;
  span = (): Span => ({ issued: this.now(), answered: Number.POSITIVE_INFINITY });

  newRun(thread: ThreadNotes, more: Pick<RunNote, "kind" | "mode" | "strategy" | "graph_id" | "delayed">): RunNote {
    const ended = Number.POSITIVE_INFINITY;
    const note: RunNote = { token: this.token("t"), ...more, ...this.span(), ended, outputs: [], cancels: [] };
    thread.runs.push(note);
    return note;
  }

  newChange(thread: ThreadNotes, kind: ChangeNote["kind"], token: string): ChangeNote {
    const change = { kind, token, ...this.span(), sure: true };
    thread.changes.push(change);
    return change;
  }

  /**
   * Asks, and notes when the answer came. The answer must be one of those that are allowed; on a thread that somebody
   * deletes it may also be that there is none.
   *
   * @throws Unanswered the process was killed meanwhile
   */
  async ask(
    span: Span & { sure?: boolean },
    what: string,
    allowed: readonly number[],
    thread: ThreadNotes,
    ...request: Parameters<Api["send"]>
  ): Promise<Answer> {
    try {
      const answer = await this.api.send(...request);
      span.answered = this.now();
      this.say(span, `${what}: ${answer.status}`);
      const isAllowed = allowed.includes(answer.status) || (thread.deleted !== undefined && answer.status === 404);
      if (!isAllowed) throw new Breach(`${what} was answered ${answer.status}: ${answer.text}`);
      return answer;
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      span.answered = this.now();
      if (span.sure !== undefined) span.sure = false;
      for (const run of this.threads.flatMap(({ runs }) => runs))
        if (run.ended === Number.POSITIVE_INFINITY) run.retried = true;
      this.say(span, `${what}: no answer`);
      throw error;
    }
  }

  say = ({ issued, answered }: Span, what: string) =>
    this.log.push(`${String(issued).padStart(4)}-${answered}  ${this.threads.length}  ${what}`);

  /** The runs of a thread, newest first; undefined when it is gone. */
  async list({ thread_id }: ThreadNotes): Promise<WireRun[] | undefined> {
    const { status, body } = await this.api.send("GET", `/threads/${thread_id}/runs?limit=1000`);
    return status === 200 ? body : undefined;
  }

  noteOf(thread: ThreadNotes, { run_id, metadata }: WireRun): RunNote | undefined {
    const note = thread.runs.find(({ token }) => token === metadata.token);
    if (note) note.run_id = run_id;
    return note;
  }

  pathOf = ({ thread_id }: ThreadNotes, run_id: string) => `/threads/${thread_id}/runs/${run_id}`;

  target(thread: ThreadNotes, run: WireRun): Target {
    const note = this.noteOf(thread, run);
    return { thread, note, name: note?.token ?? "?", run_id: run.run_id, path: this.pathOf(thread, run.run_id) };
  }

  /** A run for the command: every state that there is has the same chance, and so has that there is no such run. */
  async choose(row: Row, pick: number): Promise<Target> {
    const { thread } = this;
    const runs = (await this.list(thread)) ?? [];
    const states = ["none", ...new Set(runs.map(({ status }) => status))];
    const state = states[pick % states.length] ?? "none";
    this.#met.add(row, state);
    const some = runs.filter(({ status }) => status === state);
    const run = some[Math.floor(pick / 10) % Math.max(some.length, 1)];
    return run
      ? this.target(thread, run)
      : { thread, name: "nobody", run_id: UNKNOWN_ID, path: this.pathOf(thread, UNKNOWN_ID) };
  }

  /** For a command about the thread: the state of the run that it finds there, the active one or else the newest. */
  async meetThread(row: Row): Promise<void> {
    const runs = (await this.list(this.thread)) ?? [];
    const found = (status: string) => runs.find((run) => run.status === status);
    this.#met.add(row, (found("running") ?? found("pending") ?? runs[0])?.status ?? "none");
  }

  ended(note: RunNote | undefined, at: Span): void {
    if (note) note.ended = Math.min(note.ended, at.answered);
  }
}
