import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { FilterError } from "../../../src/experiments/filter/filter-reader.ts";
import { parseFilter } from "../../../src/experiments/filter/parse.ts";
import { type FilterableRun, matches } from "../../support/evaluate-filter.ts";
import type { Row } from "../experiment.ts";
import { type Anything, apiOf, type GetService, plain, unique } from "./api.ts";
import { anyExpression, ERRORS, LATENCIES_MS, NAMES, SCALARS, START, WORDS } from "./filter-expressions.ts";

/** Runs that differ in everything a filter can ask for; the last ones are of the same examples as the first. */
const RUNS = 48;
const EXAMPLES = 39;

function rows(): Row[] {
  const pick = <T>(from: readonly T[], at: number): T => from[at % from.length] as T;
  const ids = Array.from({ length: EXAMPLES }, unique);
  return Array.from({ length: RUNS }, (_, index) => ({
    row_id: ids[index % EXAMPLES] as string,
    inputs: { text: pick(WORDS, index % EXAMPLES), n: index % EXAMPLES },
    actual_outputs: index % 5 === 0 ? null : { answer: pick(WORDS, index * 3 + 1) },
    start_time: new Date(START + (index % 8)).toISOString().replace("Z", `${index % 4 === 3 ? "5" : "0"}00Z`),
    end_time: new Date(START + (index % 8) + pick(LATENCIES_MS, index * 7)).toISOString().replace("Z", "500Z"),
    run_name: pick(NAMES, index * 3),
    error: pick(ERRORS, index),
    run_metadata: index % 6 === 5 ? null : metadata(index),
    evaluation_scores: scores(index),
  }));
}

const metadata = (index: number): Record<string, unknown> => {
  const entries = Array.from({ length: index % 5 }, (_, at): [string, unknown] => [
    NAMES[(index + at) % NAMES.length] as string,
    SCALARS[(index * 5 + at * 7) % SCALARS.length],
  ]);
  return Object.fromEntries([...entries, ["deep", { alpha: [1] }], ["list", [index]]]);
};

const scores = (index: number): Record<string, unknown>[] =>
  Array.from({ length: index % 4 }, (_, at) => {
    const value = SCALARS[(index * 3 + at * 11) % SCALARS.length];
    const score = [0, 0.5, 1, -0.25, 0.1 + 0.2, undefined][(index + at) % 6];
    return {
      key: NAMES[(index * 2 + at) % NAMES.length] || "empty",
      value: index % 7 === 0 ? { any: "alpha" } : value,
      score,
    };
  });

export function filterScenarios(service: GetService): void {
  const api = apiOf(service);

  describe("a filter of runs means in the database what it means in memory", () => {
    let session: string;
    let runs: FilterableRun[];
    beforeAll(async () => {
      const results = rows();
      const { experiment } = await api.upload(plain(0, { results }));
      session = experiment.id;
      const page = await api.ok("POST", "/runs/query", { session: [session] });
      runs = page.runs.map((run: Anything) => filterable(run, results.find((row) => isOf(run, row)) as Row));
      expect(runs).toHaveLength(RUNS);
      expect(new Set(runs.map(({ reference_example, start_time }) => `${reference_example} ${start_time}`)).size).toBe(
        RUNS,
      );
    });

    /** Runs of one example start at different times. */
    const isOf = (run: Anything, { row_id, start_time }: Row) =>
      run.reference_example_id === row_id && microseconds(run.start_time) === microseconds(start_time);

    /** A run as it was uploaded, with the ids that it got. */
    const filterable = ({ id, reference_example_id }: Anything, row: Row): FilterableRun => {
      const [start_time, end_time] = [microseconds(row.start_time), microseconds(row.end_time)];
      const texts = [row.run_name, row.error, row.run_metadata, row.inputs, row.actual_outputs];
      return {
        id,
        name: row.run_name as string,
        status: row.error === null ? "success" : "error",
        error: row.error as string | null,
        latency: (end_time - start_time) / 1e6,
        start_time,
        end_time,
        run_type: "chain",
        tags: [],
        is_root: true,
        reference_example: reference_example_id,
        metadata: row.run_metadata ?? {},
        feedback: (row.evaluation_scores ?? []).map(({ key, score, value }) => ({
          key: key as string,
          score: (score as number | undefined) ?? null,
          value: value ?? null,
        })),
        text: () =>
          texts.map((text) => (typeof text === "string" ? text : text ? JSON.stringify(text) : "")).join("\n"),
      };
    };

    const microseconds = (time: string) =>
      Date.parse(`${time.slice(0, 23)}Z`) * 1000 + Number(/\.\d{3}(\d{3})/.exec(time)?.[1] ?? 0);

    const found = async (filter: string) => {
      const page = await api.ok("POST", "/runs/query", { session: [session], filter, select: ["id"] });
      return page.runs.map(({ id }: Anything) => id).sort();
    };
    const expected = (filter: string) =>
      runs
        .filter((run) => matches(parseFilter(filter), run))
        .map(({ id }) => id)
        .sort();

    const written: string[] = [
      ...[...NAMES, "nobody"].flatMap((name) => [
        `eq(name, ${JSON.stringify(name)})`,
        `neq(name, ${JSON.stringify(name)})`,
        `eq(metadata_key, ${JSON.stringify(name)})`,
        `eq(feedback_key, ${JSON.stringify(name)})`,
        `exists(metadata, ${JSON.stringify(name)})`,
        `and(neq(metadata_key, ${JSON.stringify(name)}), exists(metadata_value))`,
      ]),
      ...SCALARS.flatMap((scalar) =>
        ["metadata_value", "feedback_value"].flatMap((field) => [
          `eq(${field}, ${JSON.stringify(scalar)})`,
          `neq(${field}, ${JSON.stringify(scalar)})`,
          `not(eq(${field}, ${JSON.stringify(scalar)}))`,
          ...(scalar === null ? [] : [`in(${field}, [${JSON.stringify(scalar)}, "nothing"])`]),
          ...(typeof scalar === "number" ? [`gt(${field}, ${scalar})`, `lte(${field}, ${scalar})`] : []),
        ]),
      ),
      ...SCALARS.map((scalar) => `has(metadata, '${JSON.stringify({ alpha: scalar }).replaceAll("'", "\\u0027")}')`),
      ...ERRORS.map((error) => `eq(error, ${JSON.stringify(error)})`),
      ...ERRORS.map((error) => `neq(error, ${JSON.stringify(error)})`),
      ...LATENCIES_MS.flatMap((ms) =>
        ["gt", "gte", "lt", "lte", "eq", "neq"].map((op) => `${op}(latency, ${ms / 1000})`),
      ),
      ...LATENCIES_MS.map((ms) => `gte(latency, "${ms}ms")`),
      ...[0, 1, 7].flatMap((ms) =>
        ["gt", "gte", "lt", "lte", "eq", "neq"].flatMap((op) => [
          `${op}(start_time, "${new Date(START + ms).toISOString()}")`,
          `${op}(start_time, "${new Date(START + ms).toISOString().replace("Z", "500Z")}")`,
        ]),
      ),
      ...[0, 0.5, 0.30000000000000004, 0.3, -1].flatMap((score) =>
        ["gt", "gte", "lt", "lte", "eq", "neq"].map((op) => `${op}(feedback_score, ${score})`),
      ),
      ...[...WORDS, "ALPHA beta", '"', "%", "_", "\\\\", "É"].map((word) => `search(${JSON.stringify(word)})`),
      "eq(feedback_score, null)",
      "neq(feedback_score, null)",
      "exists(feedback_score)",
      "exists(feedback_value)",
      "exists(metadata_value)",
      "exists(error)",
      "exists(end_time)",
      "exists(tags)",
      "exists(reference_example)",
      "eq(reference_example, null)",
      'has(tags, "a")',
      'not(has(tags, "a"))',
      "eq(is_root, true)",
      "neq(is_root, true)",
      "eq(is_root, false)",
      'eq(run_type, "chain")',
      'in(run_type, ["llm", "tool"])',
      'neq(run_type, "llm")',
      'in(status, ["error"])',
      "in(name, [])",
      "not(in(name, []))",
      'eq(thread_id, "alpha")',
      'and(eq(feedback_key, "alpha"), gt(feedback_score, 0.2), exists(feedback_value))',
      'and(eq(feedback_key, "alpha"), or(eq(feedback_score, 0), eq(feedback_value, true)))',
      'and(neq(feedback_key, "alpha"), gt(feedback_score, 0.2))',
      'and(eq(metadata_key, "alpha"), neq(metadata_value, 1))',
      'not(and(eq(metadata_key, "alpha"), neq(metadata_value, 1)))',
      'or(and(eq(metadata_key, "alpha"), eq(metadata_value, 1)), not(exists(error)))',
    ];

    it.each([...new Set(written)])("%s", async (filter) => {
      expect(await found(filter)).toEqual(expected(filter));
    });

    it.each(['"quoted"', "back\\slash", 'say "hi"'])(
      "search finds %s, which JSON writes in another way",
      async (words) => {
        const filter = `search(${JSON.stringify(words)})`;
        expect(expected(filter)).not.toEqual([]);
        expect(await found(filter)).toEqual(expected(filter));
      },
    );

    it("by the ids of a run and of its example, with and without dashes", async () => {
      const [one, two] = runs as [FilterableRun, FilterableRun];
      const dashless = (id: string) => id.replaceAll("-", "").toUpperCase();
      expect(await found(`eq(id, "${dashless(one.id)}")`)).toEqual([one.id]);
      expect(await found(`in(id, ["${one.id}", "${two.id}", "${unique()}"])`)).toEqual([one.id, two.id].sort());
      const ofSame = runs.filter(({ reference_example }) => reference_example === two.reference_example);
      const ids = ofSame.map(({ id }) => id).sort();
      const example = dashless(two.reference_example as string);
      expect(await found(`eq(reference_example_id, '${example}')`)).toEqual(ids);
      expect(await found(`neq(reference_example, "${example}")`)).toHaveLength(RUNS - ids.length);
    });

    it("is tested with filters that match some runs and not others", () => {
      const sizes = written.map((filter) => expected(filter).length);
      // Most of them find some and leave some: those compare more than two empty lists.
      expect(sizes.filter((size) => size > 0 && size < RUNS).length).toBeGreaterThan(written.length / 2);
    });

    it("for random filters", { timeout: 120_000 }, async () => {
      const counts = { refused: 0, some: 0 };
      await fc.assert(
        fc.asyncProperty(anyExpression, async (filter) => {
          const reason = refusalOf(filter);
          if (reason !== undefined) {
            counts.refused++;
            const answer = await api.send("POST", "/runs/query", { session: [session], filter });
            expect([answer.status, answer.body.detail]).toEqual([400, `The filter is invalid. ${reason}`]);
            return;
          }
          const ids = expected(filter);
          if (ids.length > 0 && ids.length < RUNS) counts.some++;
          expect(await found(filter)).toEqual(ids);
        }),
        { numRuns: 400 },
      );
      expect(counts.some).toBeGreaterThan(50);
      expect(counts.refused).toBeLessThan(160);
    });

    it("also if several are given: all of them must match", async () => {
      const [filter, trace_filter, tree_filter] = ["exists(error)", 'neq(name, "alpha")', "gt(latency, 0.01)"];
      const query = "beta";
      const page = await api.ok("POST", "/runs/query", {
        session: [session],
        filter,
        trace_filter,
        tree_filter,
        query,
      });
      const all = `and(${filter}, ${trace_filter}, ${tree_filter}, search("${query}"))`;
      expect(page.runs.map(({ id }: Anything) => id).sort()).toEqual(expected(all));
      expect(expected(all).length).toBeGreaterThan(0);
      expect(page.parsed_query).toBe(filter);
    });
  });

  const refusalOf = (filter: string): string | undefined => {
    try {
      parseFilter(filter);
      return undefined;
    } catch (error) {
      if (error instanceof FilterError) return error.message;
      throw error;
    }
  };

  describe("a filter that cannot be read", () => {
    const wrong: [string, number][] = [
      ["eq(", 3],
      ["eq(name)", 7],
      ['eq(name "a")', 8],
      ['eq(nome, "a")', 3],
      ['like(name, "a")', 0],
      ['eq(name, "a"', 12],
      ['eq(name, "a")) ', 13],
      ['eq(name, "a', 9],
      ['gt(name, "a")', 3],
      ["gt(latency, fast)", 12],
      ['eq(id, "me")', 7],
      ['gt(start_time, "soon")', 15],
      ["and()", 4],
      ["has(metadata, '[]')", 14],
      ['and(eq(feedback_key, "a"), eq(feedback_key, "b"), gt(feedback_score, 1))', 27],
    ];
    const routes: [string, (filter: string) => [string, object]][] = [
      ["/runs/query", (filter) => ["/runs/query", { filter }]],
      ["/runs/stats", (filter) => ["/runs/stats", { tree_filter: filter }]],
    ];

    it.each(wrong.flatMap(([filter, at]) => routes.map(([route]) => [filter, at, route] as const)))(
      "such as %s is refused at position %i by %s",
      async (filter, at, route) => {
        const body = routes.find(([name]) => name === route)?.[1](filter) as [string, object];
        const answer = await api.send("POST", ...body);
        expect(answer.status).toBe(400);
        expect(answer.body).toEqual({ detail: expect.stringContaining(`The filter is invalid. At ${at}: `) });
      },
    );

    it.each(wrong)("such as %s is refused at position %i in a comparison, too", async (filter, at) => {
      const { dataset, experiment } = await api.upload(plain(1));
      const body = { session_ids: [experiment.id], filters: { [experiment.id]: [filter] } };
      const answer = await api.send("POST", `/datasets/${dataset.id}/runs`, body);
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(` At ${at}: `)]);
    });

    it.each([
      ["calls", { filter: `or(${Array(999).fill('eq(name, "a")')})` }],
      ["listed values", { filter: `in(name, [${Array(999).fill('"a"')}])` }],
      ["words", { query: Array.from({ length: 100 }, (_, n) => `w${n}`).join(" ") }],
    ])("may have many %s", async (_, body) => {
      expect((await api.ok("POST", "/runs/query", body)).runs).toEqual([]);
      expect(await api.ok("POST", "/runs/stats", body)).toMatchObject({ run_count: 0 });
    });

    it("may not be a text with more than 100 words", async () => {
      const text = Array.from({ length: 3_000 }, (_, n) => `w${n % 101}`).join(" ");
      const answer = await api.send("POST", "/runs/query", { query: text });
      expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining("101 different words")]);
    });

    it("does not filter when it is empty", async () => {
      const { experiment } = await api.upload(plain(2));
      for (const filter of ["", "  ", null]) {
        const page = await api.ok("POST", "/runs/query", { session: [experiment.id], filter });
        expect(page.runs).toHaveLength(2);
      }
    });
  });
}
