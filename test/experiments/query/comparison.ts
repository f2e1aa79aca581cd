import { parse } from "csv-parse/sync";
import { beforeAll, describe, expect, it } from "vitest";
import type { Row } from "../experiment.ts";
import { type Anything, apiOf, type GetService, plain, query, unique } from "./api.ts";

/** What a spreadsheet would carry out. */
const FORMULAS = ["=1+1", "+1", "@SUM(A1)", "-A1", "-1+cmd|' /C calc'!A0", "\t=1", "\r=1", "-.A1", "-5e"];

/** What looks like it and is none. */
const HARMLESS = ["-1", "-1.5", "-.5", "-1e-7", "a=b", "", 'say "hi", twice', "one\ntwo", "Größe 😀", " =1"];

export function comparisonScenarios(service: GetService): void {
  const api = apiOf(service);

  describe("the table of a comparison", () => {
    let dataset: Anything;
    let sessions: string[];
    let rows: Row[][];
    beforeAll(async () => {
      const dataset_name = unique();
      const first = plain(130, { dataset_name });
      first.results = first.results.map((row, index) => ({
        ...row,
        error: FORMULAS[index] ?? HARMLESS[index - FORMULAS.length] ?? null,
        actual_outputs: index === 3 ? null : { answer: "x".repeat(index === 5 ? 500 : 5), index },
        evaluation_scores: [
          ...(index % 2 ? [{ key: "grade", score: -index / 4 }] : [{ key: "grade", value: `=${index}` }]),
          ...(index === 120 ? [{ key: "late, but there", score: true }] : []),
        ],
      }));
      const second = plain(0, { dataset_name });
      second.results = first.results.slice(0, 2).map((row) => ({ ...row, error: null, evaluation_scores: null }));
      rows = [first.results, second.results];
      const uploads = [await api.upload(first), await api.upload(second)];
      dataset = uploads[0]?.dataset;
      sessions = uploads.map(({ experiment }) => experiment.id);
    });

    const table = async (body: object) => {
      const answer = await api.send("POST", `/datasets/${dataset.id}/runs?format=csv`, body);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
      return { answer, lines: parse(answer.text, { columns: true }) as Record<string, string>[] };
    };

    it("has a line for each run, with all that belongs to it, whatever page is requested", async () => {
      const { answer, lines } = await table({ session_ids: sessions, limit: 1, offset: 50 });
      expect(answer.headers.get("content-disposition")).toBe('attachment; filename="experiments-2.csv"');
      expect(lines).toHaveLength(132);
      expect(Object.keys(lines[0] ?? {})).toEqual([
        "example_id",
        "inputs",
        "reference_outputs",
        "session_id",
        "run_id",
        "status",
        "start_time",
        "end_time",
        "latency",
        "outputs",
        "error",
        "feedback.grade",
        "feedback.late, but there",
      ]);
      const order = rows[0]?.flatMap(({ row_id }, index) => (index < 2 ? [row_id, row_id] : [row_id]));
      expect(lines.map(({ example_id }) => example_id)).toEqual(order);
      expect(lines.slice(0, 4).map(({ session_id }) => session_id)).toEqual([...sessions, ...sessions]);
      const row = rows[0]?.[21] as Row;
      expect(lines[23]).toEqual({
        example_id: row.row_id,
        inputs: JSON.stringify(row.inputs),
        reference_outputs: JSON.stringify(row.expected_outputs),
        session_id: sessions[0],
        run_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        status: "success",
        start_time: "2026-01-01T00:00:00.021+00:00",
        end_time: "2026-01-01T00:00:00.142+00:00",
        latency: "0.121",
        outputs: JSON.stringify(row.actual_outputs),
        error: "",
        "feedback.grade": "-5.25",
        "feedback.late, but there": "",
      });
      expect(lines[122]?.["feedback.late, but there"]).toBe("1");
    });

    it("has no cell that a spreadsheet would execute, and leaves all others unchanged", async () => {
      const { lines } = await table({ session_ids: sessions.slice(0, 1) });
      const errors = lines.map(({ error }) => error);
      expect(errors.slice(0, FORMULAS.length)).toEqual(FORMULAS.map((text) => `'${text}`));
      expect(errors.slice(FORMULAS.length, FORMULAS.length + HARMLESS.length)).toEqual(HARMLESS);
      expect(lines[2]?.["feedback.grade"]).toBe("'=2");
      expect(lines[3]).toMatchObject({ outputs: "", "feedback.grade": "-0.75" });
    });

    it("has the beginnings of the outputs on request", async () => {
      const { lines } = await table({ session_ids: sessions.slice(0, 1), preview: true });
      expect(lines[5]?.outputs?.length).toBeLessThan(250);
      expect(lines[6]?.outputs).toBe("xxxxx");
    });

    it("has only the lines that match the filters, in the requested order", async () => {
      const { lines } = await table({
        session_ids: sessions.slice(0, 1),
        filters: { [sessions[0] as string]: ["gt(feedback_score, -2)"] },
        sort_params: { sort_by: "feedback.grade", sort_order: "ASC" },
      });
      expect(lines.map((line) => line["feedback.grade"])).toEqual(["-1.75", "-1.25", "-0.75", "-0.25", "'=120"]);
    });

    it("shows each run with its inputs, even when its example was changed afterwards", async () => {
      const dataset_name = unique();
      const first = plain(3, { dataset_name });
      const second = plain(0, { dataset_name });
      second.results = first.results.slice(0, 2).map((row) => ({ ...row, inputs: { question: "changed" } }));
      const old = await api.upload(first);
      const young = await api.upload(second);
      const session_ids = [young.experiment.id, old.experiment.id];
      const page = await api.ok("POST", `/datasets/${old.dataset.id}/runs`, { session_ids });
      const changed = { question: "changed" };
      expect(page.map(({ inputs }: Anything) => inputs)).toEqual([changed, changed, first.results[2]?.inputs]);
      expect(page.map(({ runs }: Anything) => runs.map(({ inputs }: Anything) => inputs))).toEqual([
        [changed, first.results[0]?.inputs],
        [changed, first.results[1]?.inputs],
        [first.results[2]?.inputs],
      ]);
      const ids = (example: Anything) =>
        example.runs.map((run: Anything) => [run.session_id, run.reference_example_id]);
      expect(ids(page[0])).toEqual(session_ids.map((session_id) => [session_id, page[0].id]));
    });

    it("is only a header if there are no rows", async () => {
      const empty = await api.upload(plain(0));
      const body = { session_ids: [empty.experiment.id] };
      const answer = await api.send("POST", `/datasets/${empty.dataset.id}/runs?format=csv`, body);
      expect(answer.text.split("\n").filter(Boolean)).toHaveLength(1);
    });

    it("does not exist for unknown datasets and experiments, or in another format", async () => {
      const csv = (body: object, format = "csv") =>
        api.send("POST", `/datasets/${dataset.id}/runs?format=${format}`, body);
      const unknown = await csv({ session_ids: [unique()] });
      expect([unknown.status, unknown.body.detail]).toEqual([404, "Session not found"]);
      const none = await csv({ session_ids: [] });
      expect([none.status, none.body.detail[0].loc]).toEqual([422, ["body", "session_ids"]]);
      const other = await csv({ session_ids: sessions }, "xls");
      expect([other.status, other.body.detail[0].loc]).toEqual([422, ["query", "format"]]);
      const order = await csv({ session_ids: sessions, sort_params: { sort_by: "colour" } });
      expect([order.status, order.body.detail[0].loc]).toEqual([422, ["body", "sort_params", "sort_by"]]);
    });
  });

  describe("stored comparisons", () => {
    const path = "/datasets/comparative";

    it("are found by ids and names, newest first, page by page, until they are deleted", async () => {
      const dataset_name = unique();
      const one = await api.upload(plain(1, { dataset_name }));
      const two = await api.upload(plain(1, { dataset_name }));
      const experiment_ids = [one.experiment.id, two.experiment.id];
      const of = `/datasets/${one.dataset.id}/comparative`;
      expect(await api.get(of)).toEqual([]);
      const made: Anything[] = [];
      for (const [index, name] of ["First One", "second", "third one", null].entries()) {
        const created_at = new Date(Date.UTC(2026, 0, 1 + index)).toISOString();
        made.push(await api.ok("POST", path, { name, experiment_ids, created_at, extra: { index } }));
      }
      expect(await api.get(of)).toEqual(made.toReversed());
      const found = async (parameters: Parameters<typeof query>[0]) =>
        (await api.get(`${of}${query(parameters)}`)).map(({ extra }: Anything) => extra.index);
      expect(await found({ name: "second" })).toEqual([1]);
      expect(await found({ name: "sec" })).toEqual([]);
      expect(await found({ name_contains: "ONE" })).toEqual([2, 0]);
      expect(await found({ id: [made[0].id, made[3].id, unique()] })).toEqual([3, 0]);
      expect(await found({ limit: 2, offset: 1 })).toEqual([2, 1]);
      await api.ok("DELETE", `${path}/${made[1].id}`);
      expect(await found({})).toEqual([3, 2, 0]);
      expect((await api.send("DELETE", `${path}/${made[1].id}`)).status).toBe(404);
      await api.ok("DELETE", `/sessions/${one.experiment.id}`);
      const [left] = await api.get(of);
      expect(left.experiments_info).toEqual([{ id: two.experiment.id, name: two.experiment.name }]);
    });

    it("have the dataset of their first experiment when none is named", async () => {
      const { dataset, experiment } = await api.upload(plain(1));
      const made = await api.ok("POST", path, { experiment_ids: [experiment.id.replaceAll("-", "")] });
      expect(made).toMatchObject({ name: null, description: null, extra: null, reference_dataset_id: dataset.id });
      const free = await api.ok("POST", "/sessions", { name: unique() });
      const answer = await api.send("POST", path, { experiment_ids: [free.id] });
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(free.id)]);
    });
  });
}
