import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Progress } from "../../src/cli/experiments/progress.ts";
import { freePort, runCli } from "../support/process.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";
import { TraceClient, run as traceOf } from "../traces/trace-client.ts";
import { LM_EVAL_CHOICES, LM_EVAL_TWO_FILTERS, PROMPTFOO, PROMPTFOO_V2 } from "./experiment-files.ts";
import { type Recorded, type Recorder, STORED, startRecorder } from "./experiment-recorder.ts";

const NO_KEYS = { THREADMILL_API_KEY: "", LANGSMITH_API_KEY: "" };

let folder: TestProject;
beforeEach(() => {
  folder = createProject({});
});
afterEach(() => folder.drop());

/** Runs `threadmill experiments ...` in its own process, against the service at `url`. */
const run = (url: string, args: string[], env: Record<string, string> = {}) =>
  runCli(["experiments", ...args, "--url", url], { ...NO_KEYS, ...env });

/** Writes a file, and gives its path. */
function file(name: string, content: unknown): string {
  folder.write(name, typeof content === "string" ? content : JSON.stringify(content));
  return join(folder.folder, name);
}

const lines = (...rows: unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const FRANCE = {
  inputs: { country: "France", of: { continent: "Europe", un: true } },
  expected_outputs: { city: "Paris" },
};

describe("experiments upload", () => {
  let recorder: Recorder;
  beforeAll(async () => {
    recorder = await startRecorder();
  });
  afterAll(() => recorder.stop());
  beforeEach(() => {
    recorder.requests.length = 0;
    recorder.aborted = 0;
    recorder.answer(200, STORED);
  });

  const upload = (path: string, ...args: string[]) => run(recorder.url, ["upload", path, ...args]);

  /** Uploads, and gives the one request that was sent. */
  async function sent(path: string, ...args: string[]): Promise<Recorded> {
    recorder.requests.length = 0;
    const { status, stderr } = await upload(path, ...args);
    expect({ status, stderr, requests: recorder.requests.length }).toMatchObject({ status: 0, requests: 1 });
    return recorder.requests[0] as Recorded;
  }

  const sentRows = async (path: string, ...args: string[]) => (await sent(path, ...args)).body.results;

  const BODY = {
    experiment_name: "in the file",
    experiment_start_time: "2026-03-01T10:00:00",
    experiment_end_time: "2026-03-01T11:00:00+01:00",
    dataset_name: "capitals",
    dataset_id: "11111111111141118111111111111111",
    experiment_metadata: { model: "m1" },
    results: [{ row_id: "x", anything: ["as it is"], score: 1e3 }, "no row at all"],
    future_field: { kept: true },
  };

  it("passes on a whole upload unchanged", async () => {
    const request = await sent(file("body.json", `\ufeff${JSON.stringify(BODY, null, 2)}`));
    expect(request.body).toEqual(BODY);
    expect(request).toMatchObject({ method: "POST", path: "/api/v1/datasets/upload-experiment" });
    expect(request.headers).toMatchObject({ "content-type": "application/json", "transfer-encoding": "chunked" });
    expect(request.headers["x-api-key"]).toBeUndefined();
  });

  it("gives flags precedence over the file, and accepts either the name or the id of a dataset", async () => {
    const path = file("body.json", BODY);
    const args = ["--name", "run 2", "--dataset", "other", "--description", "of today", "--metadata", '{"model":"m2"}'];
    const { dataset_id, ...rest } = BODY;
    expect((await sent(path, ...args)).body).toEqual({
      ...rest,
      experiment_name: "run 2",
      dataset_name: "other",
      experiment_description: "of today",
      experiment_metadata: { model: "m2" },
    });
    const { dataset_name, ...byId } = BODY;
    expect((await sent(path, "--dataset-id", "d-2")).body).toEqual({ ...byId, dataset_id: "d-2" });
  });

  it("prints what was stored, and its page", async () => {
    const path = file("body.json", BODY);
    const { stdout } = await upload(path);
    expect(stdout).toContain("Uploaded 2 rows.");
    expect(stdout).toContain(`run 1 (${STORED.experiment.id})`);
    expect(stdout).toContain(`capitals (${STORED.dataset.id})`);
    const page = `/o/tenant-1/datasets/${STORED.dataset.id}/compare?selectedSessions=${STORED.experiment.id}`;
    expect(stdout).toContain(`${recorder.url}${page}\n`);
    expect(JSON.parse((await upload(path, "--json")).stdout)).toEqual(STORED);
  });

  it("sends the API key of the flag, or else of the environment", async () => {
    const path = file("body.json", BODY);
    const env = { THREADMILL_API_KEY: "key-one", LANGSMITH_API_KEY: "key-two" };
    await run(`${recorder.url}/api/v1/`, ["upload", path, "--api-key", "key-zero"], env);
    await run(recorder.url, ["upload", path], env);
    await run(recorder.url, ["upload", path], { LANGSMITH_API_KEY: "key-two" });
    expect(recorder.requests.map(({ headers }) => headers["x-api-key"])).toEqual(["key-zero", "key-one", "key-two"]);
    expect(new Set(recorder.requests.map(({ path: to }) => to)).size).toBe(1);
  });

  describe("rows without ids and times", () => {
    it("get the same id for the same inputs of the same dataset, and a different one otherwise", async () => {
      const { inputs } = FRANCE;
      const turned = { of: { un: true, continent: "Europe" }, country: "France" };
      const path = file(
        "rows.jsonl",
        lines({ inputs }, { inputs: turned }, { inputs: { ...inputs, country: "Peru" } }),
      );
      const [first, same, other] = (await sentRows(path, "--dataset", "capitals")).map(
        (row: { row_id: string }) => row.row_id,
      );
      expect(first).toMatch(UUID);
      expect(same).toBe(first);
      expect(other).not.toBe(first);
      const list = file("list.json", [{ inputs: turned }, { inputs, row_id: "mine" }]);
      const again = await sentRows(list, "--dataset", "capitals", "--name", "again");
      expect(again.map((row: { row_id: string }) => row.row_id)).toEqual([first, "mine"]);
      const [elsewhere] = await sentRows(list, "--dataset", "others");
      expect(elsewhere.row_id).not.toBe(first);
      const [byId] = await sentRows(list, "--dataset-id", "capitals");
      expect(byId.row_id).toBe(first);
    });

    it("are different examples if the same inputs have different expected outputs", async () => {
      const [a, b] = [FRANCE, { ...FRANCE, expected_outputs: { city: "Lutetia" } }];
      const rows = await sentRows(file("rows.jsonl", lines(a, b, a, b)), "--dataset", "capitals");
      const ids = rows.map((row: { row_id: string }) => row.row_id);
      expect(new Set(ids).size).toBe(2);
      expect(ids.slice(2)).toEqual(ids.slice(0, 2));
      const [single] = await sentRows(file("alone.jsonl", lines(a)), "--dataset", "capitals");
      expect(single.row_id).toBe(ids[0]);
    });

    it("start now and end after their latency", async () => {
      const before = Date.now();
      const path = file("rows.jsonl", lines({ ...FRANCE, latency: 2.5 }, { ...FRANCE, latency: 0.25 }, FRANCE));
      const { body } = await sent(path, "--dataset", "capitals");
      const start = Date.parse(body.experiment_start_time);
      expect(start).toBeGreaterThanOrEqual(before);
      expect(start).toBeLessThanOrEqual(Date.now());
      const times = body.results.map((row: Record<string, string>) => [
        Date.parse(row.start_time as string) - start,
        Date.parse(row.end_time as string) - start,
        row.latency,
      ]);
      expect(times).toEqual([
        [0, 2500, undefined],
        [0, 250, undefined],
        [0, 0, undefined],
      ]);
      expect(Date.parse(body.experiment_end_time) - start).toBe(2500);
    });

    it("keep the times that they have, and the experiment covers them", async () => {
      const path = file(
        "rows.jsonl",
        lines(
          { ...FRANCE, start_time: "2026-03-01T10:00:00.000001", end_time: "2026-03-01T10:00:01Z" },
          { ...FRANCE, start_time: "2026-03-01T12:00:00+02:00", latency: 90 },
          { ...FRANCE, end_time: "2026-03-01T09:00:00Z", latency: 60 },
          { ...FRANCE, start_time: "yesterday" },
        ),
      );
      const { body } = await sent(path, "--dataset", "capitals");
      const times = body.results.map((row: Record<string, string>) => [row.start_time, row.end_time]);
      expect(times).toEqual([
        ["2026-03-01T10:00:00.000001", "2026-03-01T10:00:01Z"],
        ["2026-03-01T12:00:00+02:00", "2026-03-01T10:01:30.000+00:00"],
        ["2026-03-01T08:59:00.000+00:00", "2026-03-01T09:00:00Z"],
        ["yesterday", undefined],
      ]);
      expect(body.experiment_start_time).toBe("2026-03-01T08:59:00.000+00:00");
      expect(body.experiment_end_time).toBe("2026-03-01T10:01:30.000+00:00");
    });
  });

  it("names an experiment after its file by default, and lists ignored fields", async () => {
    const path = file(
      "run of monday.jsonl",
      `\ufeff${lines({ ...FRANCE, output: 1 })}\r\n${lines({ ...FRANCE, notes: 2 })}`,
    );
    const { stderr } = await upload(path, "--dataset", "capitals");
    expect(stderr).toContain('unknown row fields were ignored: "output", "notes"');
    expect(recorder.requests[0]?.body).toMatchObject({ experiment_name: "run of monday", dataset_name: "capitals" });
    expect(recorder.requests[0]?.body.results).toHaveLength(2);
  });

  it("reads CSV by its columns", async () => {
    const header = [
      "row_id,inputs.question,inputs.more,inputs,expected,output,score.exact,score.a b.c,value.tone,comment.exact",
      "start_time,end_time,latency,run_name,error,metadata.model,metadata,evaluation_scores",
    ].join(",");
    const text = `\ufeff${header}\r
r-1,"Who, me?\r
Yes","[1, {""a"": 2}]","{""k"": 7}",Paris,007,0.5,true,"42",why not,2026-03-01T10:00:00Z,,1.5,agent,,m1,"{""seed"": 1}","[{""key"": ""x"", ""score"": 1}]"\r
\r
,42,{not json,,,,,,,,,,,,it failed,,,\r
`;
    const [first, second] = await sentRows(file("rows.csv", text), "--dataset", "capitals");
    expect(first).toEqual({
      row_id: "r-1",
      inputs: { question: "Who, me?\r\nYes", more: [1, { a: 2 }], k: 7 },
      expected_outputs: { output: "Paris" },
      actual_outputs: { output: "007" },
      evaluation_scores: [
        { key: "exact", score: 0.5, comment: "why not" },
        { key: "a b.c", score: 1 },
        { key: "tone", value: "42" },
        { key: "x", score: 1 },
      ],
      start_time: "2026-03-01T10:00:00Z",
      end_time: "2026-03-01T10:00:01.500+00:00",
      run_name: "agent",
      run_metadata: { model: "m1", seed: 1 },
    });
    expect(second).toMatchObject({ inputs: { question: "42", more: "{not json" }, error: "it failed" });
    expect(second).not.toHaveProperty("expected_outputs");
    expect(second).not.toHaveProperty("evaluation_scores");
  });

  describe("of lm-evaluation-harness", () => {
    it("makes a run of a document, with the scores of all filters", async () => {
      const { body } = await sent(file("samples_gsm8k_cot_2026-03-01T10-20-30.123456.jsonl", LM_EVAL_TWO_FILTERS));
      expect(body).toMatchObject({
        experiment_name: "gsm8k_cot_2026-03-01T10-20-30.123456",
        dataset_name: "gsm8k_cot",
        experiment_metadata: { source: "lm-evaluation-harness", task: "gsm8k_cot" },
      });
      expect(body.results).toHaveLength(2);
      expect(body.results[1]).toMatchObject({
        row_id: expect.stringMatching(UUID),
        inputs: { question: expect.stringContaining("A box"), answer: expect.stringContaining("#### 18") },
        expected_outputs: { output: "6 * 3 = 18\n#### 18" },
        actual_outputs: { output: "[invalid]", response: "There are 18 of them." },
        evaluation_scores: [
          { key: "exact_match,strict-match", score: 0 },
          { key: "exact_match,flexible-extract", score: 1 },
        ],
        run_metadata: {
          doc_id: 1,
          doc_hash: "doc-hash-1",
          prompt: expect.stringMatching(/^Question: A box .*\nAnswer:$/),
          generation: { until: ["Question:"], temperature: 0 },
        },
      });
      expect(body.results[0].actual_outputs).toEqual({ output: "3" });
    });

    it("reads which choice was the most likely, in old and new files, and omits NaN", async () => {
      const rows = await sentRows(file("samples_sky.jsonl", LM_EVAL_CHOICES), "--dataset", "sky");
      const outputs = rows.map((row: Record<string, unknown>) => [row.expected_outputs, row.actual_outputs]);
      expect(outputs).toEqual([
        [{ output: "1" }, { output: "1", choice: " blue", loglikelihoods: [-4.25, -0.5] }],
        [{ output: "0" }, { output: "1", choice: " blue", loglikelihoods: [-3.5, -1.5] }],
        [{ output: "x" }, { output: "y" }],
        [{ output: "1" }, { output: "1", choice: " 2", loglikelihoods: [null, -0.5] }],
      ]);
      expect(rows[0].evaluation_scores).toEqual([
        { key: "acc", score: 1 },
        { key: "acc_norm", score: 0 },
      ]);
      expect(rows[1].run_metadata.metrics).toEqual({ word_perplexity: [-12.5, 3] });
      expect(rows[2].evaluation_scores).toEqual([]);
      expect(rows[2].inputs).toEqual({ query: 'NaN or "Infinity"?' });
    });
  });

  describe("of promptfoo", () => {
    it("lists the experiments if there are several", async () => {
      const { status, stderr } = await upload(file("results.json", PROMPTFOO));
      expect(status).toBe(1);
      expect(recorder.requests).toEqual([]);
      expect(stderr).toContain("results.json contains the results of 3 combinations of provider and prompt.");
      expect(stderr).toContain("--provider openai:gpt-5 --prompt 'Capital of {{country}}? One word.'");
      expect(stderr).toContain("--provider mini --prompt 'Name the capital of {{country}}.'");
      const unknown = await upload(file("results.json", PROMPTFOO), "--provider", "gpt-5");
      expect(unknown).toMatchObject({
        status: 1,
        stderr: expect.stringContaining("contains no results that match the given options"),
      });
      const half = await upload(file("results.json", PROMPTFOO), "--provider", "openai:gpt-5");
      expect(half.stderr).toContain("contains the results of 2 combinations");
    });

    it("uploads one of them, with its scores, answers and times", async () => {
      const path = file("results.json", PROMPTFOO);
      const { body } = await sent(path, "--provider", "openai:gpt-5", "--prompt", "Name");
      expect(body).toMatchObject({
        experiment_name: "results openai:gpt-5 Name the capital of {{country}}.",
        dataset_name: "Capitals",
        experiment_metadata: { source: "promptfoo", provider: "openai:gpt-5" },
      });
      expect(body.results).toHaveLength(1);
      const [row] = body.results;
      expect(row).toMatchObject({
        inputs: { country: "France" },
        expected_outputs: { output: "Paris" },
        actual_outputs: { output: "Paris" },
        evaluation_scores: [
          { key: "score", score: 1 },
          { key: "pass", score: 1, comment: "All assertions passed" },
          { key: "tone", score: 0.5 },
        ],
        run_name: "openai:gpt-5",
        run_metadata: { test: "easy", test_index: 0, cost: 0.001, tokens: { total: 12 }, cached: false },
      });
      expect(Date.parse(row.end_time) - Date.parse(row.start_time)).toBe(1250);
      const [failed] = await sentRows(path, "--provider", "openai:gpt-5", "--prompt", "Capital of");
      expect(failed).not.toHaveProperty("error");
      expect(failed.evaluation_scores[1]).toEqual({
        key: "pass",
        score: 0,
        comment: 'Expected output "Lyon" to equal "Paris"',
      });
      expect(failed.actual_outputs).toEqual({ output: { city: "Lyon" } });
      expect(failed.row_id).toBe(row.row_id);
    });

    it("distinguishes errors from failures: errors have no scores", async () => {
      const rows = await sentRows(file("results.json", PROMPTFOO), "--provider", "mini", "--dataset", "capitals");
      expect(rows[1]).toMatchObject({ error: "API call error: 429 Too Many Requests", evaluation_scores: [] });
      expect(rows[1]).not.toHaveProperty("actual_outputs");
      const old = await sentRows(file("old.json", PROMPTFOO_V2));
      expect(old.map((row: Record<string, unknown>) => row.error)).toEqual([undefined, "Request timed out"]);
      expect(old[0].evaluation_scores).toEqual([
        { key: "score", score: 0 },
        { key: "pass", score: 0 },
      ]);
      expect(old[0].row_id).not.toBe(rows[0].row_id); // another dataset
      const asLines = file("results.jsonl", lines(...PROMPTFOO.results.results));
      const [line] = await sentRows(asLines, "--provider", "mini", "--dataset", "capitals");
      expect(line.row_id).toBe(rows[0].row_id);
    });
  });

  it.each([
    ["a.json", JSON.stringify(BODY, null, 2), "in the file"],
    ["a.json", JSON.stringify([FRANCE]), "a"],
    ["a.txt", lines(FRANCE, FRANCE), "a"],
    ["a.txt", JSON.stringify(BODY), "in the file"],
    ["a.txt", "input,output\r\nx,y\r\n", "a"],
    ["a.ndjson", LM_EVAL_CHOICES, "a"],
    ["a.json", JSON.stringify(PROMPTFOO_V2.results), "a"],
  ])("detects what %s is", async (name, content, experiment) => {
    const { body } = await sent(file(name, content), ...(experiment === "a" ? ["--dataset", "d"] : []));
    expect(body.experiment_name).toBe(experiment);
    const isOf = { ndjson: "lm-evaluation-harness", json: content.includes('"display"') ? "promptfoo" : undefined };
    expect(body.experiment_metadata?.source).toBe(isOf[name.split(".")[1] as "json"]);
  });

  describe("of a file that cannot be used", () => {
    const DATASET = ["--dataset", "d"];
    it.each<[string, string, unknown, string[], string]>([
      ["no dataset", "a.jsonl", lines(FRANCE), [], "No dataset specified: pass --dataset NAME"],
      ["no JSON", "a.jsonl", `${lines(FRANCE)}\n{"inputs": }\n`, DATASET, "a.jsonl, line 3: invalid JSON: "],
      ["no object", "a.jsonl", lines(FRANCE, [1]), DATASET, "a.jsonl, line 2: a row must be an object"],
      [
        "a latency",
        "a.jsonl",
        lines({ ...FRANCE, latency: "2s" }),
        DATASET,
        'line 1: latency (in seconds) must be a number that is at least 0 and less than 1,000,000,000, but is "2s"',
      ],
      ["nothing", "a.jsonl", "\n", DATASET, "a.jsonl: the file contains no rows"],
      ["no rows", "a.csv", "input,output\n", DATASET, "a.csv: the file contains no rows"],
      [
        "a column",
        "a.csv",
        "question,output\n",
        DATASET,
        'a.csv, line 1: unknown column "question". Valid columns: row_id',
      ],
      ["no inputs", "a.csv", "output\nx\n", DATASET, "a.csv, line 1: no column contains inputs"],
      ["two columns", "a.csv", "input,input\nx,y\n", DATASET, 'line 1: duplicate column "input"'],
      [
        "a score",
        "a.csv",
        'input,score.x\n"a\nb",1\n\nc,good\n',
        DATASET,
        'a.csv, line 5: column "score.x" must be a number, not "good"',
      ],
      [
        "a short line",
        "a.csv",
        "input,output\nx,y\nz\n",
        DATASET,
        "a.csv: invalid CSV: Invalid Record Length: expect 2, got 1 on line 3",
      ],
      ["an object column", "a.csv", "inputs\nx\n", DATASET, 'line 2: column "inputs" must be a JSON object, not "x".'],
      ["no results", "a.json", { experiment_name: "x" }, [], 'a.json: the file has no "results" list'],
      ["other results", "a.json", { results: 1 }, [], 'a.json: the file must contain exactly one list "results"'],
      ["a cut off file", "a.json", '{"results": [{"a": 1}', [], "a.json: invalid JSON: the file is incomplete"],
      [
        "a bad row",
        "a.json",
        '{"results": [{"a": 1}, {"b" 2}]}',
        [],
        "a.json, element 1 of results, byte 23: invalid JSON",
      ],
      [
        "a missing comma",
        "a.json",
        '{"results": [{"a": 1} {"b": 2}]}',
        [],
        "element 1 of results, byte 22: invalid JSON: expected , or ]",
      ],
      ["UTF-16", "a.jsonl", Buffer.from("\ufeff{}", "utf16le").toString("latin1"), DATASET, "UTF-16 is not supported"],
      ["anything", "a.txt", "hello\n", DATASET, "a.txt: the format cannot be detected. Set it with --format."],
      ["no sample", "a.jsonl", lines({ doc_id: 1 }), ["--format", "lm-eval"], 'line 1: the line has no field "doc"'],
      ["no result", "a.json", [{ inputs: {} }], ["--format", "promptfoo"], 'element 0: the entry has no field "vars"'],
    ])("(%s) reports the problem and its position, and sends nothing", async (_, name, content, args, sentence) => {
      const path = file(name, content);
      if (sentence.includes("UTF-16")) folder.write(name, Buffer.from(content as string, "latin1") as never);
      const { status, stdout, stderr } = await upload(path, ...args);
      expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: "", stderr: expect.stringContaining(sentence) });
      expect(stderr).not.toContain("    at ");
      expect(recorder.requests).toEqual([]);
    });

    it("aborts the upload when it finds an error later in the file, so that nothing is stored", async () => {
      const row = { ...FRANCE, run_metadata: { padding: "x".repeat(1000) } };
      const path = file("a.jsonl", `${lines(...Array(2000).fill(row))}{"inputs"\n`);
      const { status, stderr } = await upload(path, "--dataset", "d");
      expect(status).toBe(1);
      expect(stderr).toContain("a.jsonl, line 2001: invalid JSON");
      expect(recorder).toMatchObject({ requests: [], aborted: 1 });
    });

    it("(no file) prints an error", async () => {
      expect(await upload("nowhere.json")).toMatchObject({
        status: 1,
        stderr: "error: File not found: nowhere.json.\n",
      });
      expect((await upload(folder.folder)).stderr).toContain("Not a file");
    });
  });

  describe("when the service refuses", () => {
    const detail = [
      { loc: ["body", "experiment_name"], msg: "Field required", type: "missing" },
      { loc: ["body", "results", 1, "start_time"], msg: "Input should be a valid datetime", type: "x", input: "noon" },
      { loc: ["body", "results", 1, "evaluation_scores", 0, "key"], msg: "Field required", type: "missing", input: {} },
      { loc: ["body"], msg: "dataset_id or dataset_name is required", type: "value_error" },
    ];

    it("lists the errors with their positions in the file", async () => {
      recorder.answer(422, { detail });
      const { status, stdout, stderr } = await upload(
        file("a.jsonl", `\n${lines(FRANCE)}\n${lines(FRANCE)}`),
        "--dataset",
        "d",
      );
      expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
      expect(stderr).toContain(`Nothing was stored, because the service rejected a.jsonl:
  experiment_name: Field required
  line 4 (results[1]) start_time: Input should be a valid datetime, not "noon"
  line 4 (results[1]) evaluation_scores[0].key: Field required
  the upload: dataset_id or dataset_name is required
`);
      const { stderr: ofJson } = await upload(file("a.json", BODY));
      expect(ofJson).toContain('\n  results[1] start_time: Input should be a valid datetime, not "noon"\n');
      const { stderr: ofCsv } = await upload(file("a.csv", 'input\nfirst\n\n"two\nlines"\n'), "--dataset", "d");
      expect(ofCsv).toContain("\n  line 4 (results[1]) start_time: ");
      const { stderr: ofResults } = await upload(file("r.json", PROMPTFOO), "--provider", "mini");
      expect(ofResults).toContain("\n  element 3 (results[1]) start_time: ");
    });

    const SAID = "The reason of the service.";
    it.each<[number, unknown, string[], string]>([
      [
        409,
        { detail: "Session already exists." },
        [],
        'Experiment "in the file" already exists; nothing was stored. Choose another name with --name.',
      ],
      [409, { detail: "Session already exists." }, ["--name", "n 2"], 'Experiment "n 2" already exists'],
      [409, { detail: SAID }, [], `Nothing was stored: ${SAID}`],
      [
        401,
        { detail: SAID },
        [],
        `The service requires an API key (401: ${SAID}). Set --api-key or THREADMILL_API_KEY.`,
      ],
      [401, { detail: SAID }, ["--api-key", "k"], `The service does not accept this API key (401: ${SAID})`],
      [
        413,
        { detail: SAID },
        [],
        `The upload exceeds the service's size limit (413: ${SAID}). Raise THREADMILL_MAX_UPLOAD`,
      ],
      [400, { detail: SAID }, [], `The service rejected the request (400: ${SAID}).`],
      [422, { detail: SAID }, [], `The service rejected the request (422: ${SAID}).`],
      [404, "<html>nothing here</html>", [], "There is no Threadmill service at http://127.0.0.1:"],
      [
        500,
        { detail: SAID },
        [],
        `The service could not process the request (500: ${SAID}). Check the service's log and try again.`,
      ],
      [200, "<html>hello</html>", [], "is not Threadmill: its response is not JSON. Correct --url."],
    ])("with %i %j %j, prints what to do", async (status, body, args, sentence) => {
      recorder.answer(status, body);
      const answer = await upload(file("a.json", BODY), ...args);
      expect(answer).toMatchObject({ status: 1, stdout: "", stderr: expect.stringContaining(sentence) });
      expect(answer.stderr).not.toContain("    at ");
    });

    it("stops sending when the service has answered before the end", async () => {
      recorder.refuseEarly(413, { detail: SAID });
      const row = { ...FRANCE, run_metadata: { padding: "x".repeat(10_000) } };
      const path = file("a.jsonl", lines(...Array(2000).fill(row)));
      const { status, stderr } = await upload(path, "--dataset", "d");
      expect(status).toBe(1);
      expect(stderr).toContain("exceeds the service's size limit (413");
      expect(stderr).not.toContain("100 %");
    });

    it("that is not running gets an error that states how to start it", async () => {
      const url = `http://127.0.0.1:${await freePort()}`;
      const { status, stderr } = await run(url, ["upload", file("a.json", BODY)]);
      expect(status).toBe(1);
      expect(stderr).toContain(`Cannot connect to ${url}: connection refused. Start the service`);
      const exported = await run(url, ["export", "run 1"]);
      expect(exported).toMatchObject({ status: 1, stderr: expect.stringContaining(`Cannot connect to ${url}`) });
    });
  });

  it.each([
    [["--metadata", "[1]"], "It must be a JSON object"],
    [["--format", "xml"], "Allowed choices are auto, json"],
    [["--url", "localhost"], "It must be a URL such as http://127.0.0.1:2024."],
  ])("refuses the flags %j with status 2", async (flags, sentence) => {
    const { status, stderr } = await runCli(["experiments", "upload", file("a.json", BODY), ...flags], NO_KEYS);
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(sentence) });
  });

  it("never holds the whole file in memory: a file of 60 MB is uploaded with a heap of 40 MB", async () => {
    const row = { ...FRANCE, run_metadata: { padding: "x".repeat(10_000) } };
    const path = file("a.jsonl", lines(...Array(6000).fill(row)));
    const { status, stderr } = await run(recorder.url, ["upload", path, "--dataset", "d"], {
      NODE_OPTIONS: "--max-old-space-size=40",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining("100 %, 6,000 rows") });
    expect(recorder.requests[0]?.bytes).toBeGreaterThan(60_000_000);
  });
});

describe("progress", () => {
  const shown = (isTTY: boolean, times: number[]) => {
    let written = "";
    let now = 0;
    const write = (text: string) => {
      written += text;
      return true;
    };
    const progress = new Progress({ write, isTTY, columns: 40 }, () => now);
    times.forEach((time, index) => {
      now = time;
      progress.show({ fraction: (index + 1) / 4, rows: (index + 1) * 1000 });
    });
    now = 10_000;
    progress.showWait({ rows: 4000 }, "they are stored");
    progress.end({ fraction: 1, rows: 4000 });
    return written;
  };

  it("is a bar on a terminal, no wider than the terminal, and is erased at the end", () => {
    const [first, second, waiting, last] = shown(true, [50, 1000, 1050, 2000]).split("\r").slice(1);
    expect(first).toBe(`${"█".repeat(12)}${"░".repeat(12)} 50 %, 2,000 ro\x1b[K`);
    expect(second).toContain("█".repeat(24));
    expect(waiting).toBe("4,000 rows: they are stored\x1b[K");
    expect(last).toBe("\x1b[K");
  });

  it("is a line now and then elsewhere", () => {
    expect(shown(false, [50, 4000, 5000, 6000])).toBe("75 %, 3,000 rows, 600 rows/s\n100 %, 4,000 rows, 400 rows/s\n");
  });
});

describe("experiments export", () => {
  let service: TestService;
  let url: string;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
    url = await service.listen();
  });
  afterAll(() => service.stop());

  const HEAD = {
    experiment_name: "first",
    experiment_description: "of the tests",
    experiment_start_time: "2026-03-01T10:00:00.000+00:00",
    experiment_end_time: "2026-03-01T11:00:00.000+00:00",
    dataset_name: "round trip",
    experiment_metadata: { model: "m1", nested: { a: [1] } },
    summary_experiment_scores: [{ key: "overall", score: 0.75, comment: "fine" }],
  };

  const rowId = (index: number) => `00000000-0000-5000-8000-${String(index).padStart(12, "0")}`;

  /** More than two pages, with every field, also where CSV has no column for it. */
  const ROWS = Array.from({ length: 230 }, (_, index) => ({
    row_id: rowId(index),
    inputs: { question: `number ${index}, "quoted"\r\nand\rbroken`, n: index, list: [index, { deep: null }] },
    ...(index % 3 > 0 && { expected_outputs: { answer: String(index) } }),
    ...(index % 5 > 0 ? { actual_outputs: { answer: index, text: "=1+1 ❤" } } : { error: "it failed,\nreally" }),
    evaluation_scores: [
      { key: "exact", score: index / 7, comment: index % 2 ? 'so, "so"' : undefined },
      { key: "tone", value: "42" },
      ...(index % 10 === 0
        ? [
            { key: "exact", score: 0.1 },
            { key: "shape", value: { a: 1 }, correction: "better" },
          ]
        : []),
    ].slice(0, index === 7 ? 0 : undefined),
    start_time: `2026-03-01T10:00:00.${String(index).padStart(6, "0")}+00:00`,
    end_time: "2026-03-01T10:30:00.000+00:00",
    run_name: "agent",
    run_metadata: index === 9 ? undefined : { seed: index },
  }));
  /** A second run of the first example. */
  const AGAIN = { ...ROWS[1], evaluation_scores: [{ key: "exact", score: 1 }] };

  /** What a file says, in an order that does not depend on the service: rows by id and first score. */
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  const ordered = (rows: any[]) => {
    const key = ({ row_id, evaluation_scores }: (typeof rows)[number]) =>
      `${row_id} ${String(evaluation_scores?.[0]?.score).padEnd(30)}`;
    return rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)).map(comparable);
  };

  /** A row without what the service adds to scores, such as the time at which they were given. */
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  const comparable = (row: any) => ({
    ...row,
    start_time: Date.parse(row.start_time),
    end_time: Date.parse(row.end_time),
    evaluation_scores: (row.evaluation_scores ?? [])
      .map(({ key, score, value, comment, correction }: Record<string, unknown>) => ({
        key,
        score,
        value,
        comment,
        correction,
      }))
      .toSorted((a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  });

  it("writes what can be uploaded again, in each format, with the same rows, ids and scores", async () => {
    const first = await run(url, ["upload", file("first.json", { ...HEAD, results: [...ROWS, AGAIN] }), "--json"]);
    expect(first.stderr).toContain("231 rows");
    const { experiment, dataset } = JSON.parse(first.stdout);

    const read = async (what: string, ...args: string[]) => {
      const answer = await run(url, ["export", what, ...args]);
      expect(answer).toMatchObject({ status: 0 });
      return answer;
    };
    const whole = JSON.parse((await read("first")).stdout);
    expect(whole).toMatchObject({ ...HEAD, dataset_id: dataset.id, results: expect.any(Array) });
    expect(ordered(whole.results)).toEqual(ordered([...ROWS, AGAIN]));

    for (const format of ["json", "jsonl", "csv"]) {
      const output = join(folder.folder, `copy.${format}`);
      const { stdout, stderr } = await read(experiment.id, "--output", output);
      expect(stdout).toBe("");
      expect(stderr).toContain(`Wrote 231 rows to ${output}.`);
      const flags = ["--name", `from ${format}`, "--dataset", `copy of ${format}`];
      const { status, stderr: said } = await run(url, ["upload", output, ...flags]);
      expect({ status, said }).toEqual({ status: 0, said: expect.stringContaining("100 %, 231 rows") });
      const copy = JSON.parse((await read(`from ${format}`, "--format", "json")).stdout);
      expect(copy.dataset_name).toBe(`copy of ${format}`);
      const ids = new Map(
        copy.results.map((row: { row_id: string; inputs: { n: number } }) => [row.inputs.n, row.row_id]),
      );
      expect(new Set(ids.values()).size).toBe(230);
      // The same row_id in another dataset is another example with an id of its own.
      const back = copy.results.map((row: { inputs: { n: number } }) => ({ ...row, row_id: rowId(row.inputs.n) }));
      expect(ordered(back)).toEqual(ordered([...ROWS, AGAIN]));
      if (format === "json") expect(copy).toMatchObject({ experiment_metadata: HEAD.experiment_metadata });
    }
    expect(readdirSync(folder.folder).filter((name) => name.endsWith(".partial"))).toEqual([]);
  });

  it("writes an experiment that was traced, whose runs may have ended before their start or not at all", async () => {
    const client = new TraceClient(service);
    const created = async (path: string, body: object) => (await client.json("POST", `/api/v1${path}`, body)).body.id;
    const dataset_id = await created("/datasets", { name: "traced" });
    await created("/sessions", { name: "traced", reference_dataset_id: dataset_id });
    for (const fields of [{ end_time: "2026-01-31T12:00:00.000Z" }, { end_time: null }]) {
      const reference_example_id = await created("/examples", { dataset_id, inputs: fields });
      const start_time = "2026-01-31T12:00:00.000001Z";
      const traced = { start_time, session_name: "traced", reference_example_id, ...fields };
      expect((await client.post(traceOf(traced))).status).toBe(202);
    }
    const output = join(folder.folder, "traced.json");
    expect((await run(url, ["export", "traced", "--output", output])).status).toBe(0);
    const { status, stderr } = await run(url, ["upload", output, "--name", "again", "--dataset", "again"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining("2 rows") });
  });

  it("puts the same examples into the same dataset again", async () => {
    const rows = ROWS.slice(0, 3).map(({ row_id, ...row }) => row);
    const path = file("rows.jsonl", lines(...rows));
    for (const name of ["one", "two"]) {
      const { status, stderr } = await run(url, ["upload", path, "--dataset", "repeated", "--name", name]);
      expect({ status, stderr }).toMatchObject({ status: 0 });
    }
    const ids = async (name: string) =>
      (await run(url, ["export", name, "--format", "jsonl"])).stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).row_id)
        .toSorted();
    expect(await ids("two")).toEqual(await ids("one"));
    expect(await ids("two")).toHaveLength(3);
    const again = await run(url, ["upload", path, "--dataset", "repeated", "--name", "one"]);
    expect(again).toMatchObject({ status: 1, stderr: expect.stringContaining('Experiment "one" already exists') });
  });

  it("is refused by the real service with positions in the file", async () => {
    const path = file("rows.jsonl", lines(FRANCE, { ...FRANCE, start_time: "noon" }, { inputs: 1 }));
    const { status, stderr } = await run(url, ["upload", path, "--dataset", "refused"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/\n {2}line 2 \(results\[1\]\) start_time: .*, not "noon"\n/);
    expect(stderr).toMatch(/\n {2}line 3 \(results\[2\]\) inputs: .*, not 1\n/);
  });

  it("reports an unknown experiment or an unknown folder, and leaves no file", async () => {
    const output = join(folder.folder, "none.json");
    for (const what of ["nothing", rowId(1)]) {
      const { status, stderr } = await run(url, ["export", what, "--output", output]);
      expect({ status, stderr }).toEqual({
        status: 1,
        stderr: `error: There is no experiment "${what}" at ${url}: pass the name or ID of an existing experiment.\n`,
      });
    }
    await run(url, ["upload", file("rows.jsonl", lines(FRANCE)), "--dataset", "small", "--name", "small"]);
    const nowhere = join(folder.folder, "no", "such", "folder.json");
    const { status, stderr } = await run(url, ["export", "small", "--output", nowhere]);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining(`Cannot write to ${nowhere} (ENOENT)`),
    });
    expect(existsSync(output)).toBe(false);
  });

  it("keeps the existing file when the export fails", async () => {
    const recorder = await startRecorder();
    const kept = file("kept.json", "before");
    const { id } = STORED.experiment;
    const page = Array.from({ length: 100 }, (_, index) => ({
      id: rowId(index),
      inputs: {},
      runs: [{ inputs: {}, feedbacks: [], start_time: HEAD.experiment_start_time, end_time: HEAD.experiment_end_time }],
    }));
    recorder.answer(200, ({ path, body }: Recorded) => {
      if (path.endsWith("/runs")) return body.offset === 0 ? [200, page] : [500, { detail: "No more." }];
      if (path.startsWith("/api/v1/feedback")) return [200, []];
      return [200, path.includes("/sessions/") ? { ...HEAD, id, name: "n", reference_dataset_id: id } : STORED.dataset];
    });
    const { status, stderr } = await run(recorder.url, ["export", id, "--output", kept]);
    await recorder.stop();
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining("The service could not process the request (500: No more.)"),
    });
    expect(recorder.requests.at(-1)?.body).toEqual({ session_ids: [id], offset: 100, limit: 100 });
    expect(readFileSync(kept, "utf8")).toBe("before");
    expect(readdirSync(folder.folder)).not.toContain("kept.json.partial");
  });
});
