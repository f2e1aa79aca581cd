/**
 * Evaluates and traces with the official client, which finds the server in its environment.
 *
 * The argument is the address of a fake of the chat completions of OpenAI.
 *
 * Prints a line of JSON for each scenario: {"scenario": ..., "ok": true}, or with "ok": false and the "reason".
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { awaitAllCallbacks } from "@langchain/core/callbacks/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { RunTree, type Run as TracedRun } from "langsmith";
import { evaluate, evaluateComparative } from "langsmith/evaluation";
import { getCurrentRunTree, traceable } from "langsmith/traceable";
import { wrapOpenAI } from "langsmith/wrappers/openai";

const QUESTIONS = ["1 + 1", "2 + 2", "3 + 3", "0 / 0"];
const ANSWERS = [2, 4, 7, 0];
const USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };

// `traceable` and `evaluate` send with this one, so that it can be flushed.
const client = RunTree.getSharedClient();
const flush = () => client.awaitPendingTraceBatches();

// biome-ignore lint/suspicious/noExplicitAny: the client's types lack half of what the API returns
type Anything = any;

/** Posts to a route that the client has no method for. */
async function post(path: string, body: unknown): Promise<Anything> {
  const response = await fetch(`${process.env.LANGSMITH_ENDPOINT}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}

/** Everything that the client goes through, page by page. */
async function listed<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function dataset(): Promise<string> {
  const name = `js ${randomUUID()}`;
  const { id } = await client.createDataset(name);
  const inputs = QUESTIONS.map((question) => ({ question }));
  await client.createExamples({ inputs, outputs: ANSWERS.map((answer) => ({ answer })), datasetId: id });
  return name;
}

const calculate = traceable(
  async (question: string) => {
    const [left, operator, right] = question.split(" ");
    if (operator === "/") throw new Error("divided by zero");
    return { number: Number(left) + Number(right), usage_metadata: USAGE };
  },
  { name: "calculate", run_type: "llm", metadata: { ls_provider: "openai", ls_model_name: "gpt-4o" } },
);

const target = async ({ question }: { question: string }) => ({ answer: (await calculate(question)).number });

type Answer = { answer?: number };
type Evaluated = { run: TracedRun; outputs: Answer; referenceOutputs?: Answer };

const EVALUATION = {
  evaluators: [
    ({ outputs, referenceOutputs }: Evaluated) => ({
      key: "correct",
      score: outputs?.answer === referenceOutputs?.answer,
    }),
    ({ run, outputs, referenceOutputs }: Evaluated) => [
      {
        key: "distance",
        score: Math.abs((outputs?.answer ?? 0) - (referenceOutputs?.answer ?? 0)) / 2,
        comment: `${outputs?.answer} or ${referenceOutputs?.answer}`,
      },
      { key: "kind", value: run.error ? "error" : "number" },
    ],
  ],
  summaryEvaluators: [
    ({ outputs, referenceOutputs }: { outputs: Answer[]; referenceOutputs?: Answer[] }) => {
      const right = outputs.filter((each, index) => each?.answer === referenceOutputs?.[index]?.answer);
      return { key: "passed", score: right.length / outputs.length };
    },
  ],
};

/** The runs of each question, as the table of an experiment shows them. */
async function byQuestion(datasetName: string, ...experiments: string[]) {
  const { id } = await client.readDataset({ datasetName });
  const projects = await Promise.all(experiments.map((projectName) => client.readProject({ projectName })));
  const examples = await post(`/datasets/${id}/runs`, { session_ids: projects.map((project) => project.id) });
  return new Map<string, Anything>(examples.map((example: Anything) => [example.inputs.question, example]));
}

const project = (projectName: string): Promise<Anything> => client.readProject({ projectName, includeStats: true });

async function evaluation() {
  const data = await dataset();
  const results = await evaluate(target, {
    data,
    ...EVALUATION,
    numRepetitions: 2,
    maxConcurrency: 3,
    metadata: { model: "small" },
  });
  await flush();
  const { experimentName } = results;
  const found = await project(experimentName);
  assert.deepEqual([found.run_count, found.total_tokens, found.prompt_tokens], [8, 90, 60]);
  assert.equal(found.error_rate, 0.25);
  assert.ok(found.latency_p50 >= 0);
  assert.partialDeepStrictEqual(found.extra?.metadata, { model: "small", num_repetitions: 2 });
  assert.partialDeepStrictEqual(found.feedback_stats, {
    correct: { n: 8, avg: 0.5 },
    distance: { n: 8, avg: 0.125, min: 0, max: 0.5 },
    kind: { values: { number: 6, error: 2 } },
  });
  assert.ok(found.feedback_stats.distance.comments.includes("6 or 7"));
  assert.partialDeepStrictEqual(found.session_feedback_stats, { passed: { n: 1, avg: 0.5 } });
  const rows = await byQuestion(data, experimentName);
  for (const [index, question] of QUESTIONS.entries()) {
    const { runs } = rows.get(question);
    assert.equal(runs.length, 2);
    for (const run of runs) {
      assert.equal(run.feedback_stats.correct.avg, index < 2 ? 1 : 0);
      const expected = index < 3 ? ["success", { answer: 2 * index + 2 }, 15] : ["error", null, 0];
      assert.deepEqual([run.status, run.outputs, run.total_tokens], expected);
      assert.equal(/divided by zero/.test(run.error ?? ""), index === 3);
    }
  }
}

async function comparedWithAnUpload() {
  const [dataset_name, at] = [`js ${randomUUID()}`, "2026-01-01T00:00:00Z"];
  const { dataset, experiment } = await post("/datasets/upload-experiment", {
    experiment_name: `${dataset_name} up`,
    dataset_name,
    experiment_start_time: at,
    experiment_end_time: at,
    results: QUESTIONS.map((question, index) => ({
      row_id: randomUUID(),
      inputs: { question },
      expected_outputs: { answer: ANSWERS[index] },
      actual_outputs: { answer: -1 },
      evaluation_scores: [{ key: "correct", score: 0 }],
      start_time: at,
      end_time: at,
    })),
  });
  const { experimentName } = await evaluate(target, { data: dataset_name, ...EVALUATION });
  await flush();
  const rows = await byQuestion(dataset_name, `${dataset_name} up`, experimentName);
  const answers = rows.get("2 + 2").runs.map((run: TracedRun) => run.outputs?.answer);
  assert.deepEqual(answers, [-1, 4]);
  const { id } = await project(experimentName);
  const { comparisons } = await post(`/datasets/${dataset.id}/compare`, {
    baseline_session_id: experiment.id,
    comparison_session_ids: [id],
  });
  assert.partialDeepStrictEqual(comparisons, [{ key: "correct", wins: 2, losses: 0 }]);
}

async function comparative() {
  const data = await dataset();
  const one = await evaluate(target, { data });
  const two = await evaluate(() => ({ answer: 0 }), { data });
  await flush();
  const better = ({ runs, referenceOutputs }: { runs: TracedRun[]; referenceOutputs?: Record<string, unknown> }) => ({
    key: "better",
    scores: Object.fromEntries(runs.map((run) => [run.id, Number(run.outputs?.answer === referenceOutputs?.answer)])),
  });
  const names = [one.experimentName, two.experimentName];
  const { results } = await evaluateComparative(names, { evaluators: [better], loadNested: true });
  assert.equal(results.length, 4);
  await flush();
  const averages = await Promise.all(names.map(async (name) => (await project(name)).feedback_stats?.better.avg));
  assert.deepEqual(averages, [0.5, 0.25]);
  const [run] = (await byQuestion(data, one.experimentName)).get("1 + 1").runs;
  const feedback = await listed(client.listFeedback({ runIds: [run.id] }));
  assert.partialDeepStrictEqual(feedback, [{ key: "better", score: 1 }]);
}

async function trees() {
  const project_name = randomUUID();
  const broken = traceable(
    async () => {
      throw new Error("no such order");
    },
    { name: "broken", run_type: "tool" },
  );
  const stream = traceable(
    async function* () {
      await new Promise((resolve) => setTimeout(resolve, 20));
      yield "a";
      yield "b";
    },
    { name: "stream", run_type: "llm", aggregator: (chunks: string[]) => chunks.join("") },
  );
  const agent = traceable(
    async (question: string) => {
      const run = getCurrentRunTree();
      await broken().catch(() => undefined);
      let answer = "";
      for await (const chunk of stream()) answer += chunk;
      run.metadata.late = "yes";
      return { question, answer, run_id: run.id };
    },
    { name: "agent", project_name, tags: ["blue"], metadata: { thread_id: "t-1", nested: { a: [1, null] } } },
  );
  const answer = await agent("where?");
  await flush();
  const root = await client.readRun(answer.run_id, { loadChildRuns: true });
  assert.deepEqual(
    [root.name, root.run_type, root.inputs, root.outputs],
    ["agent", "chain", { input: "where?" }, answer],
  );
  assert.partialDeepStrictEqual(root.extra?.metadata, { thread_id: "t-1", nested: { a: [1, null] }, late: "yes" });
  assert.deepEqual(root.tags, ["blue"]);
  const [first, second] = root.child_runs as [TracedRun, TracedRun];
  assert.deepEqual(
    [first.name, first.run_type, first.status, first.parent_run_id],
    ["broken", "tool", "error", root.id],
  );
  assert.match(first.error ?? "", /no such order/);
  assert.deepEqual([second.name, second.status, second.outputs], ["stream", "success", { outputs: "ab" }]);
  const { first_token_time } = second as { first_token_time?: string };
  assert.ok(first_token_time && Date.parse(first_token_time) >= Date.parse(String(second.start_time)));
  type Query = Parameters<typeof client.listRuns>[0];
  const names = async (query: Query) => {
    const runs = await listed(client.listRuns({ projectName: project_name, ...query }));
    return runs.map(({ name }) => name).sort();
  };
  assert.deepEqual(await names({}), ["agent", "broken", "stream"]);
  assert.deepEqual(await names({ isRoot: true }), ["agent"]);
  assert.deepEqual(await names({ traceId: root.id, isRoot: false }), ["broken", "stream"]);
  assert.deepEqual(await names({ parentRunId: root.id, runType: "tool" }), ["broken"]);
  assert.deepEqual(await names({ error: true }), ["broken"]);
  assert.deepEqual(await names({ id: [second.id] }), ["stream"]);
  assert.deepEqual(await names({ filter: 'and(eq(run_type, "tool"), search("no such order"))' }), ["broken"]);
  assert.deepEqual(await names({ filter: 'and(eq(metadata_key, "late"), eq(metadata_value, "yes"))' }), ["agent"]);
  assert.deepEqual(await names({ traceFilter: 'eq(name, "agent")', filter: 'eq(run_type, "llm")' }), ["stream"]);
  assert.deepEqual(await names({ treeFilter: 'eq(name, "broken")', isRoot: true }), ["agent"]);
  const stats = await client.getRunStats({ projectNames: [project_name], isRoot: true });
  assert.partialDeepStrictEqual(stats, { run_count: 1, error_rate: 0, streaming_rate: 1 });
  assert.equal((await client.getRunStats({ projectNames: [project_name], trace: root.id })).run_count, 3);
}

async function attachments() {
  const data = Uint8Array.from({ length: 76_800 }, (_, index) => index % 256);
  const [id, page] = [randomUUID(), new TextEncoder().encode("<b>\r\n--x--\r\n")];
  const look = traceable((image: Uint8Array, size: number) => image.length * size, {
    id,
    extractAttachments: (image, size) => [{ image: ["image/png", image], page: ["text/html", page] }, { size }],
  });
  await look(data, 2);
  await flush();
  const run: Anything = await client.readRun(id);
  assert.deepEqual(run.inputs, { size: 2 });
  const read = async (name: string) =>
    new Uint8Array(await (await fetch(run.s3_urls[name]?.presigned_url ?? "")).arrayBuffer());
  assert.deepEqual(Object.keys(run.s3_urls), ["attachment.image", "attachment.page"]);
  assert.deepEqual(await read("attachment.image"), data);
  assert.deepEqual(await read("attachment.page"), page);
}

/** As much of the client of OpenAI as is wrapped. */
const openAI = {
  completions: { create: () => undefined },
  chat: {
    completions: {
      async create(body: { stream?: boolean }) {
        const response = await fetch(`${process.argv[2]}/chat/completions`, {
          method: "POST",
          body: JSON.stringify(body),
        });
        if (!body.stream) return response.json();
        const lines = (await response.text()).matchAll(/^data: (\{.*)$/gm);
        return (async function* () {
          for (const [, line] of lines) yield JSON.parse(line as string);
        })();
      },
    },
  },
};

async function wrapped() {
  const project_name = randomUUID();
  const { create } = wrapOpenAI(openAI).chat.completions;
  const question = { model: "gpt-4o", messages: [{ role: "user" as const, content: "Hello?" }], temperature: 0 };
  const chat = traceable(
    async () => {
      let text = (await create(question)).choices[0]?.message.content ?? "";
      const chunks = await create({ ...question, stream: true, stream_options: { include_usage: true } });
      for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? "";
      return text;
    },
    { name: "chat", project_name },
  );
  assert.equal(await chat(), "Hello you.Hello you.");
  await flush();
  const [root, ...models] = (await listed(client.listRuns({ projectName: project_name, order: "asc" }))) as [TracedRun];
  const { total_tokens, prompt_tokens, completion_tokens, total_cost } = root as Anything;
  assert.deepEqual([total_tokens, prompt_tokens, completion_tokens], [24, 18, 6]);
  assert.equal(Number(total_cost).toFixed(9), (2 * (9 * 2.5e-6 + 3 * 1e-5)).toFixed(9));
  assert.equal(models.length, 2);
  for (const run of models as TracedRun[]) {
    assert.partialDeepStrictEqual(run.extra?.metadata, { ls_provider: "openai", ls_model_name: "gpt-4o" });
    assert.deepEqual([run.run_type, run.inputs.messages], ["llm", question.messages]);
    assert.equal(run.outputs?.choices[0].message.content, "Hello you.");
    assert.deepEqual([run.parent_run_id, run.total_tokens], [root.id, 12]);
  }
  const first_tokens = (models as Anything[]).map((run) => run.first_token_time !== null);
  assert.deepEqual(first_tokens, [false, true]);
}

const TOKENS = { input_tokens: 9, output_tokens: 3, total_tokens: 12 };

/** A model of LangChain, as the packages of the providers implement it. */
class Model extends BaseChatModel {
  _llmType() {
    return "small";
  }
  override getLsParams() {
    return { ls_provider: "openai", ls_model_name: "gpt-4o", ls_model_type: "chat" as const };
  }
  async _generate() {
    return {
      generations: [{ text: "Hello you.", message: new AIMessage({ content: "Hello you.", usage_metadata: TOKENS }) }],
    };
  }
  override async *_streamResponseChunks(_: unknown, __: unknown, runManager?: CallbackManagerForLLMRun) {
    for (const text of ["Hello", " you."]) {
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
      yield chunk;
      await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
    yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "", usage_metadata: TOKENS }) });
  }
}

async function langchain() {
  const State = Annotation.Root({ text: Annotation<string> });
  const model = new Model({});
  const graph = new StateGraph(State)
    .addNode("ask", async () => ({ text: String((await model.invoke("Hello?")).content) }))
    .addNode("talk", async ({ text }) => {
      for await (const chunk of await model.stream("Hello?")) text += chunk.content;
      return { text };
    })
    .addEdge(START, "ask")
    .addEdge("ask", "talk")
    .addEdge("talk", END)
    .compile();
  const runId = randomUUID();
  assert.equal((await graph.invoke({ text: "" }, { runId })).text, "Hello you.Hello you.");
  await awaitAllCallbacks();
  await flush();
  const root: Anything = await client.readRun(runId);
  assert.deepEqual([root.total_tokens, root.prompt_tokens, root.completion_tokens], [24, 18, 6]);
  assert.equal(Number(root.total_cost).toFixed(9), (2 * (9 * 2.5e-6 + 3 * 1e-5)).toFixed(9));
  const runs: Anything[] = await listed(client.listRuns({ traceId: runId, projectName: "default", order: "asc" }));
  const nodes = new Map(runs.map(({ id, name }) => [id, name]));
  const models = runs.filter(({ run_type }) => run_type === "llm");
  assert.deepEqual(
    models.map((run) => [nodes.get(run.parent_run_id), run.total_tokens, run.first_token_time !== null]),
    [
      ["ask", 12, false],
      ["talk", 12, true],
    ],
  );
  assert.equal(root.first_token_time, models[1].first_token_time);
  assert.match(JSON.stringify(models[0].inputs.messages), /Hello\?/);
  assert.match(JSON.stringify(models[1].outputs.generations), /Hello you\./);
}

async function langgraph() {
  const State = Annotation.Root({
    steps: Annotation<string[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
  });
  const think = traceable(async () => "planned", { name: "think" });
  const graph = new StateGraph(State)
    .addNode("plan", async () => ({ steps: [await think()] }))
    .addNode("act", () => ({ steps: ["acted"] }))
    .addEdge(START, "plan")
    .addEdge("plan", "act")
    .addEdge("act", END)
    .compile();
  const runId = randomUUID();
  await graph.invoke({ steps: ["begun"] }, { runName: "crew", runId, tags: ["nightly"], metadata: { team: "a" } });
  await awaitAllCallbacks();
  await flush();
  const root = await client.readRun(runId, { loadChildRuns: true });
  assert.deepEqual([root.name, root.tags, root.extra?.metadata.team], ["crew", ["nightly"], "a"]);
  assert.deepEqual([root.inputs, root.outputs], [{ steps: ["begun"] }, { steps: ["begun", "planned", "acted"] }]);
  const nodes = (root.child_runs ?? []).filter(({ name }) => name !== "__start__");
  assert.deepEqual(
    nodes.map(({ name }) => name),
    ["plan", "act"],
  );
  const below = await listed(client.listRuns({ traceId: runId, filter: 'eq(name, "think")', projectName: "default" }));
  assert.deepEqual(below[0]?.parent_run_ids?.slice(0, 2), [runId, nodes[0]?.id]);
  assert.partialDeepStrictEqual(nodes[1]?.extra?.metadata, { langgraph_node: "act", langgraph_step: 2 });
}

async function feedback() {
  const [id, project_name] = [randomUUID(), randomUUID()];
  const { id: sessionId } = await client.createProject({ projectName: project_name });
  await client.createFeedback(id, "early", { score: true, comment: "before", sessionId });
  await traceable(async () => "done", { id, project_name, name: "step" })();
  await flush();
  await client.createFeedback(id, "late", { score: 0.5, value: "fine" });
  const found = await listed(client.listFeedback({ runIds: [id] }));
  assert.deepEqual(found.map(({ key, score }) => `${key} ${score}`).sort(), ["early 1", "late 0.5"]);
  const { feedback_stats } = await client.readRun(id);
  assert.partialDeepStrictEqual(feedback_stats, { early: { avg: 1 }, late: { avg: 0.5 } });
  const filter = 'and(eq(feedback_key, "late"), gt(feedback_score, 0.4))';
  const runs = await listed(client.listRuns({ projectName: project_name, filter }));
  assert.deepEqual(
    runs.map((run) => run.id),
    [id],
  );
}

async function evaluationOfASplit() {
  const { id: datasetId } = await client.createDataset(`js ${randomUUID()}`);
  const texts = ["zero", "one", "two"];
  await client.createExamples(
    texts.map((text, n) => ({
      dataset_id: datasetId,
      inputs: { n },
      split: n === 1 ? "easy" : "hard",
      attachments: { file: { mimeType: "text/plain", data: new TextEncoder().encode(text) } },
    })),
  );
  const read = async (_: object, config: Anything) => {
    const response = await fetch(config.attachments.file.presigned_url);
    return { text: await response.text() };
  };
  const data = client.listExamples({ datasetId, splits: ["hard"], includeAttachments: true });
  const { experimentName } = await evaluate(read, { data, includeAttachments: true });
  await flush();
  const { id, run_count, error_rate, extra } = await project(experimentName);
  assert.deepEqual([run_count, error_rate, extra.metadata.dataset_splits], [2, 0, ["hard"]]);
  const rows = await post(`/datasets/${datasetId}/runs`, { session_ids: [id] });
  const outputs = rows.map(({ runs }: Anything) => runs[0].outputs.text);
  assert.deepEqual(outputs.sort(), ["two", "zero"]);
}

const SCENARIOS = {
  "evaluate() leaves an experiment with its rows, scores, tokens and errors": evaluation,
  "evaluate() runs the examples of a split with their attachments": evaluationOfASplit,
  "evaluate() on the dataset of an uploaded experiment compares with it": comparedWithAnUpload,
  "evaluateComparative() prefers the runs of one experiment": comparative,
  "traceable functions are a tree with metadata, tags, errors and the time of the first token": trees,
  "attachments come back byte by byte": attachments,
  "wrapOpenAI() keeps messages, tokens, costs and the time of the first token": wrapped,
  "a LangGraph graph is traced with its nodes": langgraph,
  "LangChain models in a graph report tokens, costs and the time of the first token": langchain,
  "feedback is found with its run, whether it came before or after": feedback,
};

// The client prints links to experiments, and the errors of the target.
console.log = console.error = () => undefined;
for (const [scenario, run] of Object.entries(SCENARIOS)) {
  const reason = await run().then(
    () => undefined,
    (error: Error) => error.stack,
  );
  process.stdout.write(`${JSON.stringify({ scenario, ok: reason === undefined, reason })}\n`);
}
