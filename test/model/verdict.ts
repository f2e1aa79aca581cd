import { sql } from "kysely";
import type { Database } from "../../src/platform/database/database.ts";
import type { Api } from "./api.ts";
import { possibleWorlds } from "./explain.ts";
import { graphMayBeForgotten, recordMayBeWrong, stateMayBeWrong } from "./known.ts";
import { Breach, before, type RunNote, type Span, type ThreadNotes, type WireRun } from "./notes.ts";
import { headOf, type World } from "./reference.ts";

/** Compares a thread at rest with all that its clients were told. The database is read beside the service. */
export class Verdict {
  readonly #api: Api;
  readonly #database: Database;

  constructor(api: Api, database: Database) {
    this.#api = api;
    this.#database = database;
  }

  /** @throws Breach */
  async on(notes: ThreadNotes): Promise<void> {
    const { thread_id, deleted } = notes;
    const runs = await this.#api.send("GET", `/threads/${thread_id}/runs?limit=1000`);
    if (deleted && (deleted.sure || runs.status === 404)) return this.#checkDeleted(notes);
    const left = runs.body as WireRun[];
    this.#identify(notes, left);
    for (const note of notes.runs) await this.#oneRun(note, notes, left);
    const { body: thread } = await this.#api.send("GET", `/threads/${thread_id}`);
    if (thread.metadata.graph_id === undefined && graphMayBeForgotten(notes, left)) return;
    await this.#thread(notes, left);
    await this.#history(notes, left);
    await this.#nextRun(notes);
  }

  async #checkDeleted({ thread_id, runs }: ThreadNotes): Promise<void> {
    for (const path of ["", "/state", "/runs"]) {
      const { status } = await this.#api.send("GET", `/threads/${thread_id}${path}`);
      must(status === 404, `GET ${path} of the deleted thread is answered ${status}.`);
    }
    for (const table of ["threads", "runs", "checkpoints", "checkpoint_values", "checkpoint_writes"]) {
      const rows = await this.#rows(table, "thread_id", thread_id);
      must(rows === 0, `The deleted thread has ${rows} rows in ${table}.`);
    }
    for (const { run_id } of runs) if (run_id) await this.#noRows(run_id);
  }

  /** Values of a run that was deleted stay as long as checkpoints of later runs hold them; of one undone, nothing does. */
  async #noRows(run_id: string, { deleted = false } = {}): Promise<void> {
    const tables = ["runs", "run_events", "checkpoints", "checkpoint_writes"];
    for (const table of deleted ? tables : [...tables, "checkpoint_values"]) {
      const rows = await this.#rows(table, "run_id", run_id);
      must(rows === 0, `A run that is gone, ${run_id}, has ${rows} rows in ${table}.`);
    }
  }

  async #rows(table: string, column: string, value: string): Promise<number> {
    const { k } = this.#database.read;
    const query = sql`select ${sql.ref(column)} from ${sql.table(table)} where ${sql.ref(column)} = ${value}`;
    return (await this.#database.read.all(query.compile(k))).length;
  }

  /** Finds the runs whose acceptance nobody was told, and forgets those that never were. */
  #identify(notes: ThreadNotes, left: readonly WireRun[]): void {
    for (const note of notes.runs) note.run_id ??= left.find(({ metadata }) => metadata.token === note.token)?.run_id;
    const strangers = left.filter(({ run_id }) => !notes.runs.some((note) => note.run_id === run_id));
    must(strangers.length === 0, `Nobody has created ${JSON.stringify(strangers)}.`);
    const ids = left.map(({ run_id }) => run_id);
    must(same(ids, ids.toSorted().reverse()), "The runs are not listed in the order of their acceptance.");
  }

  async #oneRun(note: RunNote, notes: ThreadNotes, left: readonly WireRun[]): Promise<void> {
    const { token, run_id, cancels, outputs } = note;
    const run = left.find((one) => one.run_id === run_id);
    const outs = outputs.filter(({ status }) => status === 200);
    must(
      outs.every(({ body }) => same(body, outs[0]?.body)),
      `The joins of ${token} say different things.`,
    );
    if (run) {
      must(outs.length === outputs.length, `A join of ${token}, which is there, was answered 404.`);
      must(!cancels.some(({ sure, action }) => sure && action === "rollback"), `${token} should be rolled back.`);
      must(!cancels.some(({ sure }) => sure) || run.status === "interrupted", `${token} was cancelled: ${run.status}.`);
      this.#madeWay(run, note, notes);
      return;
    }
    if (!run_id) return;
    const isDeleted = notes.changes.some(({ kind, token }) => kind === "delete" && token === note.token);
    const undoing = [
      ...cancels.filter(({ action }) => action === "rollback"),
      ...notes.runs.filter((other) => other !== note && other.strategy === "rollback" && !before(other, note)),
    ];
    const mayBeUndone = undoing.some((span: Span) => !(note.ended < span.issued));
    must(isDeleted || mayBeUndone, `${token} is gone, and nobody asked for that.`);
    await this.#noRows(run_id, { deleted: isDeleted });
  }

  /** Who was accepted with `interrupt` or `rollback` found nobody active, or has stopped them. */
  #madeWay(run: WireRun, note: RunNote, notes: ThreadNotes): void {
    for (const { created, token, strategy } of notes.runs) {
      if (!created || created.run_id <= run.run_id || strategy === "enqueue") continue;
      if (strategy === "interrupt" && run.status === "interrupted") continue;
      must(
        run.updated_at <= created.created_at,
        `${note.token} (${run.status}) went on until ${run.updated_at}, after ${token} had come with ${strategy} at ${created.created_at}.`,
      );
    }
  }

  async #thread(notes: ThreadNotes, left: readonly WireRun[]): Promise<void> {
    const { thread_id } = notes;
    const { body: thread } = await this.#api.send("GET", `/threads/${thread_id}`);
    const { body: state } = await this.#api.send("GET", `/threads/${thread_id}/state`);
    const mayBeWrong = recordMayBeWrong(notes, left);
    must(
      mayBeWrong || same(thread.values ?? {}, state.values ?? {}),
      `Values ${show(thread.values)}, in its state ${show(state.values)}.`,
    );
    const open = Object.values(thread.interrupts).flat();
    must(
      mayBeWrong || same(open, state.interrupts ?? []),
      `Interrupts ${show(open)}, in its state ${show(state.interrupts)}.`,
    );
    const graphs = [...notes.runs.map(({ graph_id }) => graph_id), notes.named ? "work" : undefined];
    if (left.length === 0 && !notes.changes.some(({ kind }) => kind === "delete"))
      must(
        thread.metadata.graph_id === (notes.named ? "work" : undefined),
        `Its graph is ${thread.metadata.graph_id}.`,
      );
    else must(graphs.includes(thread.metadata.graph_id), `Its graph is ${thread.metadata.graph_id}.`);
    const fits = (world: World) => {
      const { items, todo, maybe, taken } = headOf(world);
      const expected = todo[0] ? [todo[0].node] : [];
      // LangGraph leaves out a task that has stored something already, such as an answer it has taken.
      const stored = maybe || (todo[0]?.asks === true && taken.length > 0);
      const nextFits = same(state.next, expected) || (stored && state.next.length === 0);
      // Every input has brought a value that later steps do not write again.
      const isWhole = items.every((item) => !item.endsWith(":in")) || state.values.doors !== undefined;
      return same(items, state.values?.items ?? []) && nextFits && isWhole && world.rest === thread.status;
    };
    const runs = left.map(({ metadata, status }) => `${metadata.token} ${status}`);
    must(
      stateMayBeWrong(notes) || possibleWorlds(notes, left, fits),
      `No order explains ${thread.status}, next ${show(state.next)}, items ${show(state.values?.items)}, runs ${show(runs)}.`,
    );
  }

  async #history(notes: ThreadNotes, left: readonly WireRun[]): Promise<void> {
    const { thread_id, changes } = notes;
    const { body: history } = await this.#api.send("POST", `/threads/${thread_id}/history`, { limit: 1000 });
    const hasHoles = changes.some(({ kind }) => kind === "delete");
    const mayBeWrong = stateMayBeWrong(notes);
    const ids = new Set(left.map(({ run_id }) => run_id));
    for (const [i, { metadata, parent_checkpoint, values, checkpoint }] of history.entries()) {
      const older = history[i + 1];
      const parent = parent_checkpoint?.checkpoint_id;
      must(
        metadata.source === "update" ? metadata.run_id === undefined : ids.has(metadata.run_id),
        `The checkpoint ${checkpoint.checkpoint_id} (${metadata.source}) is by ${metadata.run_id}, which is not there.`,
      );
      must(
        hasHoles || parent === older?.checkpoint.checkpoint_id,
        `The history has a hole before ${show(checkpoint)}.`,
      );
      const items: string[] = older?.values.items ?? [];
      must(
        mayBeWrong || same(values.items?.slice(0, items.length) ?? [], items),
        `The history does not grow at ${show(checkpoint)}.`,
      );
    }
  }

  /** The next run must see what the model says, and nothing else. */
  async #nextRun({ thread_id }: ThreadNotes): Promise<void> {
    const input = { items: ["z:in"], token: "z", kind: "chain", doors: "" };
    const path = `/threads/${thread_id}/runs/wait`;
    let state: { values: { items?: string[] } };
    let body: { items?: string[]; __error__?: { error: string } };
    do {
      state = (await this.#api.send("GET", `/threads/${thread_id}/state`)).body;
      body = (await this.#api.send("POST", path, { assistant_id: "work", input })).body;
      // On a busy machine four steps may take longer than a run may; what it had done by then stays.
    } while (body.__error__?.error === "TimeoutError");
    const expected = [...(state.values?.items ?? []), "z:in", "z:a", "z:b", "z:c"];
    must(same(body.items, expected), `The next run made ${show(body.items)} of ${show(state.values?.items)}.`);
    const { items } = (await this.#api.send("GET", `/threads/${thread_id}/state`)).body.values;
    must(same(items, expected), `The state after the next run has ${show(items)}, its output ${show(expected)}.`);
  }
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Breach(otherwise);
}

const show = (value: unknown): string => JSON.stringify(value);
const same = (a: unknown, b: unknown): boolean => show(a) === show(b);
