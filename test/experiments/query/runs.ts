import { beforeAll, describe, expect, it } from "vitest";
import { graded, START, statisticsOf } from "../../compat/langsmith/support.ts";
import type { Row } from "../experiment.ts";
import { type Anything, apiOf, type GetService, unique } from "./api.ts";

export function runScenarios(service: GetService): void {
  const api = apiOf(service);

  describe("runs", () => {
    const bodies = [graded(9), graded(14)] as const;
    let sessions: string[];
    let ids: Map<string, string>;
    beforeAll(async () => {
      sessions = [];
      for (const body of bodies) sessions.push((await api.upload(body)).experiment.id);
      const { runs } = await api.ok("POST", "/runs/query", { session: sessions });
      ids = new Map(runs.map((run: Anything) => [run.reference_example_id, run.id]));
    });
    const rows = bodies.flatMap(({ results }) => results);
    const [one, two] = [bodies[0].results, bodies[1].results];
    const idsOf = (some: Row[]) => some.map(({ row_id }) => ids.get(row_id) as string);

    const statistics = (some: Row[]) => {
      const { session_feedback_stats: _, last_run_start_time_live: __, ...of } = statisticsOf(some);
      return { ...of, median_tokens: null };
    };

    it.each<[string, () => object, Row[]]>([
      ["of two experiments", () => ({}), rows],
      ["of one of them", () => ({ session: sessions[1] }), two],
      ["that failed", () => ({ error: true }), rows.filter(({ error }) => error)],
      ["that did not", () => ({ error: false }), rows.filter(({ error }) => !error)],
      ["with these ids", () => ({ id: idsOf(rows.slice(3, 12)) }), rows.slice(3, 12)],
      ["of these examples", () => ({ reference_example: rows.slice(2, 4).map((row) => row.row_id) }), rows.slice(2, 4)],
      ["of one example", () => ({ reference_example: one[5]?.row_id }), one.slice(5, 6)],
      ["of a trace", () => ({ trace: idsOf(rows)[8] }), rows.slice(8, 9)],
      ["that started then or later", () => ({ start_time: at(7) }), [...one.slice(7), ...two.slice(7)]],
      ["that started then or before", () => ({ end_time: at(2) }), [...one.slice(0, 3), ...two.slice(0, 3)]],
      ["between two moments", () => ({ start_time: at(4), end_time: at(5) }), [...one.slice(4, 6), ...two.slice(4, 6)]],
      ["that an expression finds", () => ({ filter: 'eq(name, "odd")' }), rows.filter((row) => row.run_name === "odd")],
      ["with these words", () => ({ query: "AT 4 failed" }), [one[4], two[4]] as Row[]],
      ["that are roots", () => ({ is_root: true, run_type: "chain" }), rows],
    ])("%s add up, and are listed", async (_, query, expected) => {
      const body = { session: sessions, ...query() };
      expect(await api.ok("POST", "/runs/stats", body)).toEqual(statistics(expected));
      const { runs, cursors } = await api.ok("POST", "/runs/query", body);
      expect(runs.map(({ id }: Anything) => id).sort()).toEqual(idsOf(expected).sort());
      expect(cursors).toEqual({ next: null, prev: null });
    });

    const at = (ms: number) => new Date(START + ms).toISOString();

    it.each<[string, () => object]>([
      ["that are no roots", () => ({ is_root: false })],
      ["that have a parent", () => ({ parent_run: unique() })],
      ["of another type", () => ({ run_type: "llm" })],
      ["of no experiment", () => ({ session: [] })],
      ["of one that does not exist", () => ({ session: unique() })],
      ["of a trace that is not among the ids", () => ({ id: [unique()], trace: [...ids.values()][0] })],
    ])("%s return no runs, and statistics without runs", async (_, query) => {
      const body = { session: sessions, ...query() };
      const { runs } = await api.ok("POST", "/runs/query", body);
      expect(runs).toEqual([]);
      expect(await api.ok("POST", "/runs/stats", body)).toMatchObject({
        run_count: 0,
        latency_p50: null,
        latency_p99: null,
        error_rate: null,
        streaming_rate: null,
        last_run_start_time: null,
        feedback_stats: {},
        run_facets: [],
      });
    });

    it("are read with a cursor, each once, including those with equal start times", async () => {
      const results = graded(25).results.map((row) => ({ ...row, start_time: at(0), end_time: at(1000) }));
      const { experiment } = await api.upload({ ...graded(0), results });
      for (const order of ["asc", "desc"]) {
        const found: string[] = [];
        let cursor: string | null | undefined;
        do {
          const page = await api.ok("POST", "/runs/query", { session: [experiment.id], limit: 10, order, cursor });
          expect(page.runs.length).toBe(cursor && page.cursors.next === null ? 5 : 10);
          found.push(...page.runs.map(({ id }: Anything) => id));
          cursor = page.cursors.next;
        } while (cursor);
        expect(found).toHaveLength(25);
        expect(found).toEqual(order === "asc" ? found.toSorted() : found.toSorted().reverse());
        expect(new Set(found).size).toBe(25);
      }
    });

    it.each([
      "x",
      "",
      "W10",
      ...["[1]", '["1","2"]', '[1,"\\u0000"]'].map((json) => Buffer.from(json).toString("base64url")),
    ])('are not listed with the cursor "%s"', async (cursor) => {
      const answer = await api.send("POST", "/runs/query", { session: sessions, cursor });
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining("cursor")]);
    });

    it("are returned a hundred at a time, even if more are requested", async () => {
      const { experiment } = await api.upload(graded(120));
      const page = await api.ok("POST", "/runs/query", { session: [experiment.id], limit: 5000 });
      expect(page.runs).toHaveLength(100);
      expect(page.cursors.next).toEqual(expect.any(String));
      const answer = await api.send("POST", "/runs/query", { limit: 0 });
      expect([answer.status, answer.body.detail[0].loc]).toEqual([422, ["body", "limit"]]);
    });
  });
}
