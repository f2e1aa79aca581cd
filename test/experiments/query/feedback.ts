import { beforeAll, describe, expect, it } from "vitest";
import { type Anything, apiOf, type GetService, plain, query, unique } from "./api.ts";

export function feedbackScenarios(service: GetService): void {
  const api = apiOf(service);

  describe("feedback is found", () => {
    let session: string;
    let runs: string[];
    const comparative = unique();
    beforeAll(async () => {
      const body = plain(3, {
        summary_experiment_scores: [{ key: "whole", score: 1, created_at: "2026-01-01T00:00:09Z" }] as never,
      });
      const given = [
        [{ key: "a", score: 1, comment: "one", created_at: "2026-01-01T00:00:01Z" }],
        [
          { key: "b", value: "x", created_at: "2026-01-01T00:00:02Z", feedback_source: { type: "model" } },
          { key: "a", score: 0, created_at: "2026-01-01T00:00:03.000001Z" },
        ],
        [
          {
            key: "c",
            score: 2,
            comment: "",
            created_at: "2026-01-01T00:00:04Z",
            comparative_experiment_id: comparative,
            feedback_source: { type: "a human", user_name: "Ada" },
          },
        ],
      ];
      body.results = body.results.map((row, index) => ({ ...row, evaluation_scores: given[index] ?? [] }));
      const { experiment } = await api.upload(body);
      session = experiment.id;
      const page = await api.ok("POST", "/runs/query", { session: [session], order: "asc" });
      runs = page.runs.map(({ id }: Anything) => id);
    });

    /** By key and second, in the order of the answer. */
    const found = async (parameters: Parameters<typeof query>[0]) =>
      (await api.get(`/feedback${query({ session, ...parameters })}`)).map(
        ({ key, created_at }: Anything) => `${key}${new Date(created_at).getUTCSeconds()}`,
      );

    it("in whole, the newest first", async () => {
      expect(await found({})).toEqual(["whole9", "c4", "a3", "b2", "a1"]);
      expect(await found({ limit: 2, offset: 1 })).toEqual(["c4", "a3"]);
    });

    it("by its run or experiment", async () => {
      expect(await found({ level: "run" })).toEqual(["c4", "a3", "b2", "a1"]);
      expect(await found({ level: "session" })).toEqual(["whole9"]);
      expect(await found({ run: runs.slice(0, 2) })).toEqual(["a3", "b2", "a1"]);
      expect(await found({ run: runs[2]?.replaceAll("-", "") as string })).toEqual(["c4"]);
      expect(await found({ session: [session, unique()] })).toEqual(["whole9", "c4", "a3", "b2", "a1"]);
      expect(await found({ session: unique() })).toEqual([]);
      expect(await found({ comparative_experiment_id: comparative })).toEqual(["c4"]);
    });

    it("by its content", async () => {
      expect(await found({ key: "a" })).toEqual(["a3", "a1"]);
      expect(await found({ key: ["b", "c"] })).toEqual(["c4", "b2"]);
      expect(await found({ source: "api" })).toEqual(["whole9", "a3", "a1"]);
      expect(await found({ source: ["model", "a human"] })).toEqual(["c4", "b2"]);
      expect(await found({ has_comment: true })).toEqual(["c4", "a1"]);
      expect(await found({ has_comment: false })).toEqual(["whole9", "a3", "b2"]);
      expect(await found({ has_score: false })).toEqual(["b2"]);
      expect(await found({ has_score: true })).toEqual(["whole9", "c4", "a3", "a1"]);
      expect(await found({ has_score: true, key: "a", has_comment: true, level: "run" })).toEqual(["a1"]);
    });

    it("by the time of its creation, to the microsecond, both bounds included", async () => {
      expect(await found({ min_created_at: "2026-01-01T00:00:03.000001Z" })).toEqual(["whole9", "c4", "a3"]);
      expect(await found({ min_created_at: "2026-01-01T00:00:03.000002Z" })).toEqual(["whole9", "c4"]);
      expect(await found({ max_created_at: "2026-01-01T00:00:02" })).toEqual(["b2", "a1"]);
      expect(
        await found({ min_created_at: "2026-01-01T01:00:02+01:00", max_created_at: "2026-01-01T00:00:03.000001Z" }),
      ).toEqual(["a3", "b2"]);
    });

    it("with its source as it was given", async () => {
      const [only] = await api.get(`/feedback${query({ session, key: "c" })}`);
      expect(only).toMatchObject({
        feedback_source: { type: "a human", user_name: "Ada", metadata: null },
        comment: "",
        created_at: "2026-01-01T00:00:04.000+00:00",
        modified_at: "2026-01-01T00:00:04.000+00:00",
      });
    });

    it.each(["level=both", "has_score=maybe", "min_created_at=soon", "run=me", "session=you"])(
      "but not by %s",
      async (parameter) => {
        const answer = await api.send("GET", `/feedback?${parameter}`);
        expect([answer.status, answer.body.detail[0].loc.slice(0, 2)]).toEqual([
          422,
          ["query", parameter.split("=")[0]],
        ]);
      },
    );
  });

  describe("feedback", () => {
    const oneRun = async () => {
      const { experiment } = await api.upload(plain(1));
      const { runs } = await api.ok("POST", "/runs/query", { session: [experiment.id] });
      return { session: experiment.id as string, run: runs[0].id as string };
    };

    it("accepts every kind of value and correction, and returns them unchanged", async () => {
      const { run } = await oneRun();
      const values = ["text", "", "1", 1, 1.5, true, false, { nested: { list: [1, null] } }, {}];
      for (const value of values) {
        const made = await api.ok("POST", "/feedback", { run_id: run, key: "any", value });
        expect(made.value).toEqual(value);
        expect(await api.get(`/feedback/${made.id}`)).toEqual(made);
      }
      for (const correction of ["text", "", { answer: 1 }]) {
        const made = await api.ok("POST", "/feedback", { run_id: run, key: "any", correction });
        expect(made.correction).toEqual(correction);
      }
      const made = await api.ok("POST", "/feedback", {
        run_id: run,
        key: "all",
        extra: { a: 1 },
        feedback_group_id: run.replaceAll("-", ""),
        error: true,
      });
      expect(made).toMatchObject({ extra: { a: 1 }, feedback_group_id: run, score: null });
      const { feedback_stats } = await api.get(`/runs/${run}`);
      expect(feedback_stats.all).toMatchObject({ n: 1, errors: 1, avg: null });
      expect(feedback_stats.any).toMatchObject({
        n: 12,
        errors: 0,
        values: { text: 1, "": 1, "1": 1, true: 1, false: 1 },
      });
    });

    it("counts labels that are words of the language, too", async () => {
      const { run, session } = await oneRun();
      const labels = ["constructor", "__proto__", "toString", "constructor"];
      for (const value of labels) await api.ok("POST", "/feedback", { run_id: run, key: "__proto__", value });
      const stats = async (key: string) =>
        Object.entries((await api.get(`/sessions/${session}`)).feedback_stats).find(([name]) => name === key)?.[1];
      const { values } = (await stats("__proto__")) as { values: object };
      expect(Object.entries(values).sort()).toEqual([
        ["__proto__", 1],
        ["constructor", 2],
        ["toString", 1],
      ]);
      await api.ok("POST", "/feedback", { run_id: run, key: "other", score: 1 });
      expect(await stats("__proto__")).toMatchObject({ n: 4 });
      expect(await stats("other")).toMatchObject({ n: 1 });
    });

    it("shows ten comments in the statistics, and counts all", async () => {
      const { run } = await oneRun();
      for (let n = 0; n < 12; n++) await api.ok("POST", "/feedback", { run_id: run, key: "k", comment: `remark ${n}` });
      const { feedback_stats } = await api.get(`/runs/${run}`);
      expect(feedback_stats.k.n).toBe(12);
      expect(feedback_stats.k.comments).toHaveLength(10);
    });

    it("clears the fields that are null, and keeps those that are omitted", async () => {
      const { run, session } = await oneRun();
      const made = await api.ok("POST", "/feedback", {
        run_id: run,
        key: "k",
        score: 0.5,
        value: "v",
        comment: "c",
        correction: { d: 1 },
      });
      const modified_at = expect.any(String);
      expect(await api.ok("PATCH", `/feedback/${made.id}`, {})).toEqual({ ...made, modified_at });
      const cleared = { score: null, value: null, comment: null };
      expect(await api.ok("PATCH", `/feedback/${made.id}`, cleared)).toEqual({ ...made, ...cleared, modified_at });
      expect((await api.get(`/sessions/${session}`)).feedback_stats.k).toMatchObject({
        n: 1,
        avg: null,
        values: {},
        comments: [],
      });
    });

    it("needs a run or an experiment, and reports where that is missing", async () => {
      const answer = await api.send("POST", "/feedback", { key: "k", score: 1 });
      expect(answer.status).toBe(422);
      expect(answer.body.detail).toMatchObject([{ loc: ["body"], msg: expect.stringContaining("run_id") }]);
    });

    it.each<[string, object, (string | number)[]]>([
      ["without a key", { score: 1 }, ["body", "key"]],
      ["with an empty key", { key: "" }, ["body", "key"]],
      ["with a key that is too long", { key: "k".repeat(181) }, ["body", "key"]],
      ["with a text for a score", { key: "k", score: "1" }, ["body", "score"]],
      ["with a list for a value", { key: "k", value: [1] }, ["body", "value"]],
      ["with a number for a correction", { key: "k", correction: 1 }, ["body", "correction"]],
      ["with a source without a type", { key: "k", feedback_source: {} }, ["body", "feedback_source", "type"]],
      ["with an id that is none", { key: "k", id: "me" }, ["body", "id"]],
      [
        "with a category without a value",
        { key: "k", feedback_config: { type: "categorical", categories: [{ label: "l" }] } },
        ["body", "feedback_config", "categories", 0, "value"],
      ],
      [
        "with a category with an empty label",
        { key: "k", feedback_config: { type: "categorical", categories: [{ value: 1, label: "" }] } },
        ["body", "feedback_config", "categories", 0, "label"],
      ],
    ])("%s is refused with its location", async (_, body, loc) => {
      const answer = await api.send("POST", "/feedback", { run_id: unique(), ...body });
      expect([answer.status, answer.body.detail.map((part: Anything) => part.loc)]).toEqual([422, [loc]]);
    });
  });

  describe("the config of a feedback key", () => {
    const path = "/feedback-configs";
    const config = (type: string, more = {}) => ({ type, ...more });

    it("gains and loses categories, if it has any", async () => {
      const [tone, size] = [unique(), unique()];
      const categories = [{ value: 0 }, { value: 1, label: "yes" }];
      await api.ok("POST", path, { feedback_key: tone, feedback_config: config("categorical", { categories }) });
      await api.ok("POST", path, { feedback_key: size, feedback_config: config("continuous") });
      const change = (feedback_key: string, body: object) => api.send("PATCH", path, { feedback_key, ...body });
      const changed = await change(tone, {
        add_categories: [
          { value: 2, label: "maybe" },
          { value: 1, label: "YES" },
        ],
        remove_categories: [0],
      });
      expect(changed.body.feedback_config.categories).toEqual([
        { value: 2, label: "maybe" },
        { value: 1, label: "YES" },
      ]);
      expect((await change(size, { remove_categories: [0] })).status).toBe(422);
      expect((await change(tone, { id: unique() })).status).toBe(422);
      const enforced = { feedback_key: unique(), feedback_config: config("freeform"), is_enforced: true };
      expect((await api.send("POST", path, enforced)).status).toBe(422);
    });

    it("is created, found, changed and deleted", async () => {
      const mark = unique();
      const key = (name: string) => `${name} ${mark}`;
      const made = await api.ok("POST", path, {
        feedback_key: key("Size"),
        feedback_config: config("continuous", { min: -1.5, max: 2, categories: null }),
      });
      expect(made).toEqual({
        feedback_key: key("Size"),
        feedback_config: { type: "continuous", min: -1.5, max: 2, categories: null },
        is_lower_score_better: null,
        tenant_id: expect.any(String),
        modified_at: expect.any(String),
      });
      const categories = [{ value: 0 }, { value: 1, label: "yes" }];
      const changed = await api.ok("PATCH", path, {
        feedback_key: key("Size"),
        feedback_config: config("categorical", { categories }),
        is_lower_score_better: true,
      });
      const labelled = [
        { value: 0, label: null },
        { value: 1, label: "yes" },
      ];
      expect(changed).toMatchObject({
        feedback_config: { type: "categorical", min: null, max: null, categories: labelled },
        is_lower_score_better: true,
      });
      expect(await api.get(`${path}${query({ name_contains: mark })}`)).toEqual([changed]);
      const unset = await api.ok("PATCH", path, { feedback_key: key("Size"), is_lower_score_better: null });
      expect(unset).toMatchObject({ is_lower_score_better: null, feedback_config: { categories: labelled } });
      const deleted = await api.send("DELETE", `${path}${query({ feedback_key: key("Size") })}`);
      expect([deleted.status, deleted.text]).toEqual([204, ""]);
      expect(await api.get(`${path}${query({ key: key("Size") })}`)).toEqual([]);
    });

    it("is listed by keys and parts of them, page by page", async () => {
      const mark = unique();
      const keys = ["b", "a", "c"].map((name) => `${name} ${mark}`);
      for (const feedback_key of keys) {
        await api.ok("POST", path, { feedback_key, feedback_config: config("freeform") });
      }
      const found = async (parameters: Parameters<typeof query>[0]) =>
        (await api.get(`${path}${query(parameters)}`)).map(({ feedback_key }: Anything) => feedback_key[0]).join("");
      expect([...(await found({ name_contains: mark }))].sort().join("")).toBe("abc");
      expect(await found({ name_contains: `A ${mark}` })).toBe("a");
      expect([...(await found({ key: keys.slice(0, 2) }))].sort().join("")).toBe("ab");
      const pages = [0, 1, 2, 3].map((offset) => found({ name_contains: mark, limit: 1, offset }));
      expect((await Promise.all(pages)).sort()).toEqual(["", "a", "b", "c"]);
    });

    it("is not created twice with different content", async () => {
      const feedback_key = unique();
      const first = { feedback_key, feedback_config: config("continuous", { min: 0, max: 1 }) };
      const made = await api.ok("POST", path, first);
      const same = { max: 1, categories: null, type: "continuous", min: 0 };
      expect(await api.ok("POST", path, { feedback_key, feedback_config: same })).toEqual(made);
      const others = [
        { ...first, feedback_config: config("continuous", { min: 0, max: 2 }) },
        { ...first, feedback_config: config("freeform") },
        { ...first, is_lower_score_better: true },
      ];
      for (const other of others) {
        const answer = await api.send("POST", path, other);
        expect([answer.status, answer.body.detail]).toEqual([409, expect.stringContaining(feedback_key)]);
      }
    });

    it("is stored from the first upload that contains it", async () => {
      const [first, second] = [unique(), unique()];
      const rows = plain(2).results.map((row, index) => ({
        ...row,
        evaluation_scores: [
          { key: first, score: 1, feedback_config: config("continuous", { min: 0, max: index + 1 }) },
        ],
      }));
      const summary = [{ key: second, score: 1, feedback_config: config("freeform") }];
      await api.upload(plain(0, { results: rows, summary_experiment_scores: summary as never }));
      await api.upload(
        plain(0, { summary_experiment_scores: [{ ...summary[0], feedback_config: config("continuous") }] as never }),
      );
      const [one] = await api.get(`${path}${query({ key: first })}`);
      const [two] = await api.get(`${path}${query({ key: second })}`);
      expect(one.feedback_config).toMatchObject({ type: "continuous", max: 1 });
      expect(two.feedback_config.type).toBe("freeform");
    });
  });
}
