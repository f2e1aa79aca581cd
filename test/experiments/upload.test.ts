import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { documented, experimentOf } from "./experiment.ts";

const UPLOAD = "/api/v1/datasets/upload-experiment";

const DATASET_FIELDS = [
  "name",
  "description",
  "created_at",
  "data_type",
  "inputs_schema_definition",
  "outputs_schema_definition",
  "externally_managed",
  "id",
  "tenant_id",
  "example_count",
  "session_count",
  "modified_at",
  "last_session_start_time",
];
/** The contract's superset. */
const MORE_DATASET_FIELDS = ["transformations", "metadata", "baseline_experiment_id"];

const NO_STATISTICS = {
  run_count: null,
  latency_p50: null,
  latency_p99: null,
  first_token_p50: null,
  first_token_p99: null,
  total_tokens: null,
  prompt_tokens: null,
  completion_tokens: null,
  total_cost: null,
  prompt_cost: null,
  completion_cost: null,
  last_run_start_time: null,
  last_run_start_time_live: null,
  feedback_stats: null,
  session_feedback_stats: null,
  run_facets: null,
  error_rate: null,
  streaming_rate: null,
};
const SESSION_FIELDS = [
  "start_time",
  "end_time",
  "extra",
  "name",
  "description",
  "default_dataset_id",
  "reference_dataset_id",
  "trace_tier",
  "id",
  "tenant_id",
  "test_run_number",
  ...Object.keys(NO_STATISTICS),
];

describe.each(databases)("uploading an experiment on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());

  const upload = (body: unknown, path = UPLOAD) => service.request("POST", path, body);
  const get = async (path: string) => (await service.request("GET", path)).body;

  it("returns the dataset and the experiment with all their fields, the statistics null", async () => {
    const body = documented();
    const answer = await upload(body);

    expect(answer.status).toBe(200);
    const { dataset, experiment } = answer.body;
    expect(Object.keys(answer.body).sort()).toEqual(["dataset", "experiment"]);
    expect(Object.keys(dataset).sort()).toEqual([...DATASET_FIELDS, ...MORE_DATASET_FIELDS].sort());
    expect(Object.keys(experiment).sort()).toEqual([...SESSION_FIELDS].sort());
    expect(dataset).toMatchObject({
      name: body.dataset_name,
      description: body.dataset_description,
      externally_managed: true,
      data_type: "kv",
    });
    expect(experiment).toMatchObject({
      ...NO_STATISTICS,
      name: body.experiment_name,
      description: body.experiment_description,
      start_time: "2024-08-03T00:12:38.000+00:00",
      end_time: "2024-08-03T00:12:43.000+00:00",
      extra: { metadata: { model: "small", temperature: 0 } },
      reference_dataset_id: dataset.id,
      tenant_id: dataset.tenant_id,
      trace_tier: "longlived",
      test_run_number: 1,
    });
  });

  it("shows the statistics with the first query", async () => {
    const { experiment } = (await upload(documented())).body;
    const read = await get(`/api/v1/sessions/${experiment.id}`);
    expect(read).toMatchObject({
      run_count: 2,
      latency_p50: 2.5,
      latency_p99: 2.99,
      error_rate: 0.5,
      streaming_rate: 0,
      first_token_p50: null,
      total_tokens: null,
      total_cost: null,
      last_run_start_time: "2024-08-03T00:12:40.000+00:00",
      feedback_stats: {
        correct: { n: 2, avg: 0.5, min: 0, max: 1, values: {}, comments: ["a common mistake"], sources: ["api"] },
        tone: { n: 2, avg: 0.5, values: { dry: 1, warm: 1 }, sources: ["api", "model"] },
      },
      session_feedback_stats: { f1: { n: 1, avg: 0.87, stdev: null, comments: ["over both"] } },
    });
    expect(read.feedback_stats.correct.stdev).toBeCloseTo(Math.SQRT1_2, 12);
    const without = await get(`/api/v1/sessions/${experiment.id}?include_stats=false`);
    expect(without).toMatchObject(NO_STATISTICS);
  });

  it("stores all fields of a row", async () => {
    const body = documented();
    const { experiment, dataset } = (await upload(body)).body;
    const { runs } = (await service.request("POST", "/api/v1/runs/query", { session: [experiment.id], order: "asc" }))
      .body;
    expect(runs).toHaveLength(2);
    expect(runs[0]).toMatchObject({
      name: "ask",
      run_type: "chain",
      status: "success",
      error: null,
      inputs: { country: "France" },
      outputs: { capital: "Paris" },
      start_time: "2024-08-03T00:12:39.000+00:00",
      end_time: "2024-08-03T00:12:41.000+00:00",
      extra: { metadata: { tokens: 12 } },
      reference_example_id: body.results[0]?.row_id,
      reference_dataset_id: dataset.id,
      session_id: experiment.id,
      feedback_stats: { correct: { n: 1, avg: 1 } },
    });
    expect(runs[0].trace_id).toBe(runs[0].id);
    expect(runs[0].dotted_order).toBe(`20240803T001239000000Z${runs[0].id}`);
    expect(runs[0].app_path).toMatch(/^\//);
    expect(runs[1]).toMatchObject({ status: "error", error: "too sure of itself" });
    const examples = await get(`/api/v1/examples?dataset=${dataset.id}`);
    expect(examples.map((example: { id: string }) => example.id)).toEqual(body.results.map(({ row_id }) => row_id));
    expect(examples[0]).toMatchObject({ inputs: { country: "France" }, outputs: { capital: "Paris" } });
  });

  it("is taken without the prefix, too", async () => {
    expect((await upload(documented(), "/datasets/upload-experiment")).status).toBe(200);
  });

  describe("to a dataset", () => {
    it("that has a name gets an id, and one that has an id gets a name", async () => {
      const dataset_id = randomUUID();
      const byId = (await upload({ ...documented(), dataset_name: undefined, dataset_id })).body;
      expect(byId.dataset.id).toBe(dataset_id);
      expect(byId.dataset.name).toContain(dataset_id);
      const byName = (await upload(documented())).body;
      expect(byName.dataset.id).toMatch(/^[0-9a-f-]{36}$/);
    });

    it("that exists adds to it, by id and by name", async () => {
      const first = documented();
      const { dataset } = (await upload(first)).body;
      const results = first.results;
      const second = await upload({ ...documented(), dataset_name: first.dataset_name, results });
      const third = await upload({ ...documented(), dataset_name: null, dataset_id: dataset.id, results });
      expect([second.body.dataset.id, third.body.dataset.id]).toEqual([dataset.id, dataset.id]);
      expect(third.body.experiment.test_run_number).toBe(3);
      expect(await get(`/api/v1/datasets/${dataset.id}`)).toMatchObject({ example_count: 2, session_count: 3 });
      const sessions = await get(`/api/v1/sessions?reference_dataset=${dataset.id}`);
      expect(sessions).toHaveLength(3);
    });

    it("accepts an id without dashes", async () => {
      const dataset_id = randomUUID();
      const body = {
        ...documented(),
        dataset_name: undefined,
        dataset_id: dataset_id.replaceAll("-", "").toUpperCase(),
      };
      expect((await upload(body)).body.dataset.id).toBe(dataset_id);
    });

    it("refuses an id and a name of two datasets, and leaves nothing", async () => {
      const { dataset: one } = (await upload(documented())).body;
      const { dataset: other } = (await upload(documented())).body;
      const body = { ...documented(), dataset_id: one.id, dataset_name: other.name };
      const answer = await upload(body);
      expect(answer.status).toBe(409);
      expect(answer.body.detail).toContain(one.name);
      expect(answer.body.detail).toContain(other.name);
      const unused = { ...documented(), dataset_id: randomUUID(), dataset_name: other.name };
      expect((await upload(unused)).status).toBe(409);
      expect(await get(`/api/v1/sessions?name=${body.experiment_name}`)).toEqual([]);
    });

    it("refuses one that was created in another way", async () => {
      const name = `by-hand-${randomUUID()}`;
      await service.request("POST", "/api/v1/datasets", { name });
      const answer = await upload({ ...documented(), dataset_name: name });
      expect(answer.status).toBe(400);
      expect(answer.body.detail).toContain(name);
    });
  });

  it("refuses a taken name, and leaves no dataset behind", async () => {
    const first = documented();
    await upload(first);
    const second = { ...documented(), experiment_name: first.experiment_name };
    const answer = await upload(second);
    expect([answer.status, answer.body]).toEqual([409, { detail: "Session already exists." }]);
    expect(await get(`/api/v1/datasets?name=${second.dataset_name}`)).toEqual([]);
  });

  describe("with the same row again", () => {
    it("in one body counts repetitions of one example", async () => {
      const body = documented();
      const [row] = body.results;
      const { experiment, dataset } = (await upload({ ...body, results: [row, row, row] })).body;
      expect(await get(`/api/v1/sessions/${experiment.id}`)).toMatchObject({ run_count: 3 });
      expect((await get(`/api/v1/datasets/${dataset.id}`)).example_count).toBe(1);
    });

    it("but other inputs in one body is refused with its location", async () => {
      const body = documented();
      const [row, other] = body.results;
      const answer = await upload({ ...body, results: [row, { ...other, row_id: row?.row_id }] });
      expect(answer.status).toBe(422);
      expect(answer.body.detail[0]).toMatchObject({ loc: ["body", "results", 1, "row_id"], type: "value_error" });
    });

    it("in another dataset is another example", async () => {
      const first = documented();
      const one = (await upload(first)).body;
      const two = (await upload({ ...documented(), results: first.results })).body;
      const [a] = await get(`/api/v1/examples?dataset=${one.dataset.id}`);
      const [b] = await get(`/api/v1/examples?dataset=${two.dataset.id}`);
      expect(a.inputs).toEqual(b.inputs);
      expect(a.id).not.toBe(b.id);
    });

    it("and changed inputs makes a new version in the same splits; the old run keeps its own", async () => {
      const first = documented();
      const one = (await upload(first)).body;
      const examples = (await get(`/api/v1/examples?dataset=${one.dataset.id}`)).map(({ id }: { id: string }) => id);
      const splits = `/api/v1/datasets/${one.dataset.id}/splits`;
      expect((await service.request("PUT", splits, { split_name: "hard", examples })).status).toBe(200);
      const results = first.results.map((row) => ({ ...row, inputs: { country: "Peru" } }));
      await upload({ ...documented(), dataset_name: first.dataset_name, results });
      const [example] = await get(`/api/v1/examples?dataset=${one.dataset.id}`);
      expect(example.inputs).toEqual({ country: "Peru" });
      expect(await get(`/api/v1/examples?dataset=${one.dataset.id}&splits=hard`)).toHaveLength(examples.length);
      expect((await get(`/api/v1/datasets/${one.dataset.id}`)).example_count).toBe(2);
      const { runs } = (await service.request("POST", "/api/v1/runs/query", { session: [one.experiment.id] })).body;
      expect(runs.map((run: { inputs: unknown }) => run.inputs)).toContainEqual({ country: "France" });
    });
  });

  describe("that is invalid", () => {
    const { row_id: _, ...rowWithoutId } = documented().results[0] as object & { row_id: string };
    it.each<[string, (body: ReturnType<typeof documented>) => unknown, object[]]>([
      [
        "without a name",
        ({ experiment_name: _, ...body }) => body,
        [{ loc: ["body", "experiment_name"], type: "missing" }],
      ],
      ["without results", ({ results: _, ...body }) => body, [{ loc: ["body", "results"], type: "missing" }]],
      [
        "with results that are no list",
        (body) => ({ ...body, results: {} }),
        [{ loc: ["body", "results"], type: "list_type" }],
      ],
      ["without a dataset", (body) => ({ ...body, dataset_name: null }), [{ loc: ["body"], type: "value_error" }]],
      [
        "with a row without an id",
        (body) => ({ ...body, results: [rowWithoutId] }),
        [{ loc: ["body", "results", 0, "row_id"], type: "missing" }],
      ],
      [
        "with a row id that is null",
        (body) => ({ ...body, results: [{ ...rowWithoutId, row_id: null }] }),
        [{ loc: ["body", "results", 0, "row_id"], type: "string_type" }],
      ],
      [
        "with a row id that is no UUID",
        (body) => ({ ...body, results: [{ ...rowWithoutId, row_id: "one" }] }),
        [{ loc: ["body", "results", 0, "row_id"], type: "uuid_parsing", input: "one" }],
      ],
      [
        "with a time that is none",
        (body) => ({ ...body, experiment_end_time: "tomorrow" }),
        [{ loc: ["body", "experiment_end_time"] }],
      ],
      [
        "with a row before the experiment",
        (body) => ({ ...body, results: [{ ...body.results[0], start_time: "2024-08-03T00:12:37" }] }),
        [{ loc: ["body", "results", 0, "start_time"], type: "value_error" }],
      ],
      [
        "with a row that ends before it starts",
        (body) => ({ ...body, results: [{ ...body.results[0], end_time: "2024-08-03T00:12:38.5" }] }),
        [{ loc: ["body", "results", 0, "end_time"], type: "value_error" }],
      ],
      [
        "with an experiment that ends before it starts",
        (body) => ({ ...body, experiment_end_time: "2024-08-03T00:12:37", results: [] }),
        [{ loc: ["body", "experiment_end_time"], type: "value_error" }],
      ],
      [
        "with a score without a key",
        (body) => ({ ...body, results: [{ ...body.results[0], evaluation_scores: [{ score: 1 }] }] }),
        [{ loc: ["body", "results", 0, "evaluation_scores", 0, "key"], type: "missing" }],
      ],
      [
        "with scores that are none",
        (body) => ({
          ...body,
          results: [
            {
              ...body.results[0],
              evaluation_scores: [{ key: "a", score: 1 }, { key: "b", score: "high" }, { key: 3 }],
            },
          ],
        }),
        [
          {
            loc: ["body", "results", 0, "evaluation_scores", 1, "score"],
            msg: "Value error, must be a number or a boolean",
          },
          { loc: ["body", "results", 0, "evaluation_scores", 2, "key"], type: "string_type" },
        ],
      ],
      [
        "with a key that is too long",
        (body) => ({ ...body, summary_experiment_scores: [{ key: "k".repeat(181) }] }),
        [{ loc: ["body", "summary_experiment_scores", 0, "key"], type: "string_too_long" }],
      ],
      [
        "with a feedback source without a type",
        (body) => ({ ...body, summary_experiment_scores: [{ key: "k", feedback_source: {} }] }),
        [{ loc: ["body", "summary_experiment_scores", 0, "feedback_source", "type"], type: "missing" }],
      ],
    ])("%s is refused with its location", async (_, change, expected) => {
      const answer = await upload(change(documented()));
      expect(answer.status).toBe(422);
      expect(answer.body.detail).toMatchObject(expected);
      for (const { msg } of answer.body.detail) expect(msg).toEqual(expect.any(String));
    });

    it("in 150 rows is reported for 100 of them", async () => {
      const results = Array.from({ length: 150 }, () => ({ ...rowWithoutId }));
      const { detail } = (await upload({ ...documented(), results })).body;
      expect(detail).toHaveLength(100);
      expect(detail.at(-1).loc).toEqual(["body", "results", 99, "row_id"]);
    });

    it("as JSON is refused with the position", async () => {
      const answer = await upload(`${JSON.stringify(documented()).slice(0, -1)},}`);
      expect(answer.status).toBe(422);
      expect(answer.body.detail).toMatchObject([{ loc: ["body"], type: "json_invalid" }]);
    });

    it("leaves nothing behind", async () => {
      const body = documented();
      await upload({ ...body, results: [...body.results, rowWithoutId] });
      expect(await get(`/api/v1/datasets?name=${body.dataset_name}`)).toEqual([]);
      expect(await get(`/api/v1/sessions?name=${body.experiment_name}`)).toEqual([]);
    });
  });

  it("accepts an upload without rows, nulls in every optional field, and unknown fields", async () => {
    const { experiment_name, experiment_start_time, experiment_end_time, dataset_name } = documented();
    const answer = await upload({
      experiment_name,
      experiment_start_time,
      experiment_end_time,
      dataset_name,
      experiment_description: null,
      dataset_id: null,
      dataset_description: null,
      experiment_metadata: null,
      summary_experiment_scores: null,
      results: [],
      unknown: { to: "us" },
    });
    expect(answer.status).toBe(200);
    expect(answer.body.experiment.extra).toBeNull();
    expect(await get(`/api/v1/sessions/${answer.body.experiment.id}`)).toMatchObject({
      run_count: 0,
      latency_p50: null,
      error_rate: null,
      feedback_stats: {},
      session_feedback_stats: {},
    });
  });

  it("at the same moment as others to the same new dataset, and with rows that others have, loses nothing", async () => {
    const dataset_name = `raced-${randomUUID()}`;
    const rows = Array.from({ length: 20 }, () => randomUUID());
    const scores = () => [{ key: "right", score: 1 }];
    const body = (name: string) => experimentOf(20, scores, { dataset_name: name }, (index) => rows[index] as string);
    const names = [dataset_name, dataset_name, dataset_name, `${dataset_name} 2`, `${dataset_name} 3`];
    const answers = await Promise.all(names.map((name) => upload(body(name))));
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 200));
    const numbers = answers.slice(0, 3).map(({ body }) => body.experiment.test_run_number);
    expect(numbers.sort()).toEqual([1, 2, 3]);
    for (const { body } of answers) {
      expect(await get(`/api/v1/sessions/${body.experiment.id}`)).toMatchObject({ run_count: 20 });
      expect(await get(`/api/v1/datasets/${body.dataset.id}`)).toMatchObject({ example_count: 20 });
    }
  });

  it("with a name that another takes at the same moment is refused, and one of them is stored", async () => {
    const experiment_name = `raced-${randomUUID()}`;
    const answers = await Promise.all(Array.from({ length: 4 }, () => upload({ ...documented(), experiment_name })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    expect(await get(`/api/v1/sessions?name=${experiment_name}`)).toHaveLength(1);
  });

  it("with the id of a score that is taken is refused", async () => {
    const id = randomUUID();
    const scored = () => ({ ...documented(), summary_experiment_scores: [{ id, key: "k", score: 1, comment: "c" }] });
    expect((await upload(scored())).status).toBe(200);
    expect((await upload(scored())).status).toBe(409);
  });

  it("of many rows stores all of them", async () => {
    const body = experimentOf(
      3000,
      (index) => [{ key: "right", score: index % 3 === 0 ? 0 : 1 }],
      {
        dataset_name: `many-${randomUUID()}`,
      },
      () => randomUUID(),
    );
    const { experiment } = (await upload(body)).body;
    const stats = await get(`/api/v1/sessions/${experiment.id}`);
    expect(stats).toMatchObject({ run_count: 3000, feedback_stats: { right: { n: 3000, avg: 2 / 3 } } });
  });
});
