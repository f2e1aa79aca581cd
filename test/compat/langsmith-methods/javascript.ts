import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { Client } from "langsmith";
import { type Anything, listed } from "../langsmith/support.ts";
import { type CallResults, callAll } from "../methods/outcomes.ts";

/** What calls leave for those after them. */
type World = Record<string, Anything>;
type Call = (client: Anything, world: World) => unknown;

const NOW = Date.UTC(2026, 0, 31, 12);
const START = new Date(NOW).toISOString();

function newRun(world: World, more: object = {}): Anything {
  const id = randomUUID();
  const dotted_order = `${START.replaceAll(/[-:.]/g, "").replace("Z", "000Z")}${id}`;
  const common = { name: "run", run_type: "chain", inputs: { messages: [] }, outputs: { answer: "!" } };
  const extra = { metadata: { thread_id: world.thread } };
  return { id, trace_id: id, dotted_order, ...common, start_time: NOW, end_time: NOW + 1000, extra, ...more };
}

async function setUp(client: Anything): Promise<World> {
  const text = randomUUID();
  const world: World = { text, project_name: `project ${text}`, thread: randomUUID(), prompt: `prompt-${text}` };
  world.run = newRun(world, { project_name: world.project_name });
  await client.createRun(world.run);
  await client.flush();
  await client.awaitPendingTraceBatches();
  world.project = await client.readProject({ projectName: world.project_name });
  world.dataset = await client.createDataset(text);
  world.examples = await client.createExamples(
    ["a", "b", "c", "d"].map((q) => ({ dataset_id: world.dataset.id, inputs: { q }, outputs: { a: q } })),
  );
  world.filled_at = new Date();
  const experiment = () => client.createProject({ projectName: randomUUID(), referenceDatasetId: world.dataset.id });
  world.experiments = [await experiment(), await experiment()];
  const row = { project_name: world.experiments[0].name, reference_example_id: world.examples[2].id };
  await client.multipartIngestRuns({ runCreates: [{ ...newRun(world, row), session_name: row.project_name }] });
  world.template = ChatPromptTemplate.fromMessages([["human", "{input}"]]);
  world.key = { runId: world.run.id, sessionId: world.project.id, startTime: world.run.start_time };
  return world;
}

const inProject = ({ project }: World) => ({ project_id: project.id });
const period = { min_start_time: "2026-01-01T00:00:00Z", max_start_time: "2026-02-28T00:00:00Z" };
const files = { "README.md": { type: "file", content: "text" } };
const queueItem = (world: World) => ({
  item_type: "RUN",
  run_id: world.run.id,
  session_id: world.project.id,
  start_time: START,
});

/** Every public method with real arguments. The order matters: records are created before they are read and deleted. */
export const CALLS: Record<string, Call> = {
  tracingMode: (client) => client.tracingMode,
  headers: (client) => client.headers,
  getHostUrl: (client) => client.getHostUrl(),
  toString: (client: Anything) => client.toString(),

  createRun: (client, world) => client.createRun(newRun(world, { project_name: world.project_name })),
  updateRun: (client, world) =>
    client.updateRun(world.run.id, {
      trace_id: world.run.id,
      dotted_order: world.run.dotted_order,
      end_time: NOW + 2000,
    }),
  batchIngestRuns: (client, world) => client.batchIngestRuns({ runCreates: [newRun(world)] }),
  multipartIngestRuns: (client, world) => client.multipartIngestRuns({ runCreates: [newRun(world)] }),
  flush: (client) => client.flush(),
  awaitPendingTraceBatches: (client) => client.awaitPendingTraceBatches(),
  readRun: (client, { run }) => client.readRun(run.id, { loadChildRuns: true }),
  listRuns: (client, { project }) => listed(client.listRuns({ projectId: project.id })),
  getRunUrl: (client, { run }) => client.getRunUrl({ runId: run.id }),
  getRunStats: (client, { project }) => client.getRunStats({ projectIds: [project.id] }),
  listGroupRuns: (client, { project_name }) =>
    listed(client.listGroupRuns({ projectName: project_name, groupBy: "conversation", startTime: new Date(0) })),
  readThread: (client, { thread, project }) => listed(client.readThread({ threadId: thread, projectId: project.id })),
  listThreads: (client, { project }) => client.listThreads({ projectId: project.id, startTime: new Date(0) }),
  shareRun: async (client, world) => {
    world.run_share = randomUUID();
    await client.shareRun(world.run.id, { shareId: world.run_share });
  },
  readRunSharedLink: (client, { run }) => client.readRunSharedLink(run.id),
  listSharedRuns: (client, { run_share, run }) => client.listSharedRuns(run_share, { runIds: [run.id] }),
  unshareRun: (client, { run }) => client.unshareRun(run.id),

  createProject: async (client, world) => {
    world.other_project = await client.createProject({ projectName: randomUUID() });
  },
  updateProject: (client, { other_project }) => client.updateProject(other_project.id, { description: "changed" }),
  hasProject: (client, { project }) => client.hasProject({ projectId: project.id }),
  readProject: (client, { project }) => client.readProject({ projectId: project.id, includeStats: true }),
  getProjectUrl: (client, { project }) => client.getProjectUrl({ projectId: project.id }),
  listProjects: (client, { text }) => listed(client.listProjects({ nameContains: text })),
  deleteProject: (client, { other_project }) => client.deleteProject({ projectId: other_project.id }),

  createDataset: async (client, world) => {
    world.other_dataset = await client.createDataset(randomUUID(), { description: "other" });
  },
  readDataset: (client, { dataset }) => client.readDataset({ datasetId: dataset.id }),
  hasDataset: (client, { dataset }) => client.hasDataset({ datasetId: dataset.id }),
  getDatasetUrl: (client, { dataset }) => client.getDatasetUrl({ datasetId: dataset.id }),
  listDatasets: (client, { text }) => listed(client.listDatasets({ datasetNameContains: text })),
  updateDataset: (client, { dataset }) => client.updateDataset({ datasetId: dataset.id, description: "changed" }),
  uploadCsv: (client) =>
    client.uploadCsv({
      csvFile: new Blob(["q,a\n1,2\n"], { type: "text/csv" }),
      fileName: "examples.csv",
      inputKeys: ["q"],
      outputKeys: ["a"],
      name: randomUUID(),
    }),
  createExample: async (client, world) => {
    world.example = await client.createExample({ dataset_id: world.dataset.id, inputs: { q: 1 }, outputs: { a: 2 } });
  },
  createExamples: (client, { dataset }) =>
    client.createExamples([{ dataset_id: dataset.id, inputs: { q: 2 }, split: "test" }]),
  createLLMExample: (client, { dataset }) => client.createLLMExample("in", "out", { datasetId: dataset.id }),
  createChatExample: (client, { dataset }) =>
    client.createChatExample(
      [{ type: "human", data: { content: "?" } }],
      { type: "ai", data: { content: "!" } },
      { datasetId: dataset.id },
    ),
  readExample: (client, { example }) => client.readExample(example.id),
  listExamples: (client, { dataset }) =>
    listed(client.listExamples({ datasetId: dataset.id, includeAttachments: true })),
  updateExample: (client, { example, dataset }) =>
    client.updateExample({ id: example.id, dataset_id: dataset.id, inputs: { q: 3 }, split: "train" }),
  updateExamples: (client, { examples, dataset }) =>
    client.updateExamples([{ id: examples[0].id, dataset_id: dataset.id, metadata: { a: 1 } }]),
  uploadExamplesMultipart: (client, { dataset }) =>
    client.uploadExamplesMultipart(dataset.id, [
      {
        id: randomUUID(),
        inputs: { q: 4 },
        attachments: { note: { mimeType: "text/plain", data: new Uint8Array([97]) } },
      },
    ]),
  updateExamplesMultipart: (client, { dataset, examples }) =>
    client.updateExamplesMultipart(dataset.id, [{ id: examples[1].id, inputs: { q: 5 } }]),
  deleteExample: (client, { example }) => client.deleteExample(example.id),
  deleteExamples: (client, { examples }) => client.deleteExamples([examples[3].id]),
  listDatasetSplits: (client, { dataset }) => client.listDatasetSplits({ datasetId: dataset.id }),
  updateDatasetSplits: (client, { dataset, examples }) =>
    client.updateDatasetSplits({ datasetId: dataset.id, splitName: "test", exampleIds: [examples[0].id] }),
  readDatasetVersion: async (client, world) => {
    world.version = await client.readDatasetVersion({ datasetId: world.dataset.id, asOf: new Date() });
  },
  updateDatasetTag: (client, { dataset, version }) =>
    client.updateDatasetTag({ datasetId: dataset.id, asOf: version?.as_of ?? new Date(), tag: "prod" }),
  diffDatasetVersions: (client, { dataset, version, filled_at }) =>
    client.diffDatasetVersions({
      datasetId: dataset.id,
      fromVersion: filled_at,
      toVersion: version?.as_of ?? new Date(),
    }),
  readDatasetOpenaiFinetuning: async (client) => {
    const chat = await client.createDataset(randomUUID(), { dataType: "chat" });
    const [question, answer] = ["human", "ai"].map((type) => ({ type, data: { content: type } }));
    await client.createChatExample([question], answer, { datasetId: chat.id });
    return client.readDatasetOpenaiFinetuning({ datasetId: chat.id });
  },
  shareDataset: async (client, world) => {
    world.dataset_share = (await client.shareDataset(world.dataset.id)).share_token;
  },
  readDatasetSharedSchema: (client, { dataset }) => client.readDatasetSharedSchema(dataset.id),
  readSharedDataset: (client, { dataset_share }) => client.readSharedDataset(dataset_share),
  listSharedExamples: (client, { dataset_share }) => client.listSharedExamples(dataset_share),
  clonePublicDataset: (client, { dataset_share }) =>
    client.clonePublicDataset(dataset_share, { datasetName: randomUUID() }),
  unshareDataset: (client, { dataset }) => client.unshareDataset(dataset.id),
  deleteDataset: (client, { other_dataset }) => client.deleteDataset({ datasetId: other_dataset.id }),
  createComparativeExperiment: (client, { experiments }) =>
    client.createComparativeExperiment({
      name: randomUUID(),
      experimentIds: experiments.map(({ id }: Anything) => id),
    }),
  "datasets.experimentRuns.query": (client, { dataset, experiments }) =>
    listed(client.datasets.experimentRuns.query(dataset.id, { experiment_ids: [experiments[0].id] })),

  createFeedback: async (client, world) => {
    world.feedback = await client.createFeedback(world.run.id, "key", { score: 1 });
  },
  updateFeedback: (client, { feedback }) => client.updateFeedback(feedback.id, { score: 0 }),
  readFeedback: (client, { feedback }) => client.readFeedback(feedback.id),
  listFeedback: (client, { run }) => listed(client.listFeedback({ runIds: [run.id] })),
  logEvaluationFeedback: (client, { run, project }) =>
    client.logEvaluationFeedback({ evaluatorResponse: { key: "logged", score: 1 }, run, projectId: project.id }),
  deleteFeedback: (client, { feedback }) => client.deleteFeedback(feedback.id),
  createPresignedFeedbackToken: (client, { run }) => client.createPresignedFeedbackToken(run.id, "presigned"),
  listPresignedFeedbackTokens: (client, { run }) => listed(client.listPresignedFeedbackTokens(run.id)),
  createFeedbackConfig: (client, { text }) =>
    client.createFeedbackConfig({ feedbackKey: text, feedbackConfig: { type: "freeform" } }),
  listFeedbackConfigs: (client, { text }) => listed(client.listFeedbackConfigs({ feedbackKeys: [text] })),
  updateFeedbackConfig: (client, { text }) => client.updateFeedbackConfig(text, { isLowerScoreBetter: true }),
  deleteFeedbackConfig: (client, { text }) => client.deleteFeedbackConfig(text),

  createAnnotationQueue: async (client, world) => {
    const rubricItems = [{ feedback_key: "tone" }];
    world.queue = await client.createAnnotationQueue({ name: world.text, rubricInstructions: "Read.", rubricItems });
  },
  readAnnotationQueue: (client, { queue }) => client.readAnnotationQueue(queue.id),
  updateAnnotationQueue: (client, { queue }) => client.updateAnnotationQueue(queue.id, { description: "changed" }),
  listAnnotationQueues: (client, { text }) => listed(client.listAnnotationQueues({ name: text })),
  addRunsToAnnotationQueue: (client, { queue, key }) => client.addRunsToAnnotationQueue(queue.id, [key]),
  getRunFromAnnotationQueue: async (client, world) => {
    world.queued = await client.getRunFromAnnotationQueue(world.queue.id, 0);
  },
  listRunsFromAnnotationQueue: (client, { queue }) => listed(client.listRunsFromAnnotationQueue(queue.id)),
  getSizeFromAnnotationQueue: (client, { queue }) => client.getSizeFromAnnotationQueue(queue.id),
  "annotationQueues.retrieve": (client, { queue }) => client.annotationQueues.retrieve(queue.id),
  "annotationQueues.update": (client, { queue }) => client.annotationQueues.update(queue.id, { name: "renamed" }),
  "annotationQueues.annotationQueues": async (client, world) => {
    world.other_queue = await client.annotationQueues.annotationQueues({
      name: "other",
      session_ids: [world.project.id],
    });
  },
  "annotationQueues.populate": (client, { other_queue, project }) =>
    client.annotationQueues.populate({ queue_id: other_queue.id, session_ids: [project.id] }),
  "annotationQueues.retrieveAnnotationQueues": (client) => listed(client.annotationQueues.retrieveAnnotationQueues()),
  "annotationQueues.retrieveQueues": (client, { run }) => client.annotationQueues.retrieveQueues(run.id),
  "annotationQueues.retrieveRun": (client, { queue }) => client.annotationQueues.retrieveRun(0, { queue_id: queue.id }),
  "annotationQueues.retrieveSize": (client, { queue }) => client.annotationQueues.retrieveSize(queue.id),
  "annotationQueues.retrieveTotalSize": (client, { queue }) => client.annotationQueues.retrieveTotalSize(queue.id),
  "annotationQueues.retrieveTotalArchived": (client, { queue }) =>
    client.annotationQueues.retrieveTotalArchived(queue.id),
  "annotationQueues.createRunStatus": (client, { queued }) =>
    client.annotationQueues.createRunStatus(queued.queue_run_id, { status: "completed" }),
  "annotationQueues.export": (client, { queue }) => client.annotationQueues.export(queue.id, {}),
  "annotationQueues.runs.list": (client, { queue }) => client.annotationQueues.runs.list(queue.id, { archived: true }),
  "annotationQueues.runs.update": (client, { queue, queued }) =>
    client.annotationQueues.runs.update(queued.queue_run_id, { queue_id: queue.id, last_reviewed_time: START }),
  "annotationQueues.runs.deleteQueue": (client, { queue, queued }) =>
    client.annotationQueues.runs.deleteQueue(queued.queue_run_id, { queue_id: queue.id }),
  "annotationQueues.runs.create": (client, { queue, run }) =>
    client.annotationQueues.runs.create(queue.id, { body: [run.id] }),
  "annotationQueues.runs.deleteAll": (client, { queue }) =>
    client.annotationQueues.runs.deleteAll(queue.id, { delete_all: true }),
  "annotationQueues.runs.createByKey": (client, { queue, run, project }) =>
    client.annotationQueues.runs.createByKey(queue.id, {
      body: [{ run_id: run.id, session_id: project.id, start_time: START }],
    }),
  deleteRunFromAnnotationQueue: (client, { queue, run }) => client.deleteRunFromAnnotationQueue(queue.id, run.id),
  "annotationQueues.items.create": async (client, world) => {
    const { items } = await client.annotationQueues.items.create(world.queue.id, { items: [queueItem(world)] });
    world.item = items[0];
  },
  "annotationQueues.items.list": (client, { queue }) =>
    listed(client.annotationQueues.items.list(queue.id, { status: "needs_my_review" })),
  "annotationQueues.items.retrieveCount": (client, { queue }) =>
    client.annotationQueues.items.retrieveCount(queue.id, { status: "all" }),
  "annotationQueues.items.retrievePlacement": (client, { queue, item }) =>
    client.annotationQueues.items.retrievePlacement(item.id, { queue_id: queue.id }),
  "annotationQueues.items.createStatus": (client, { item }) =>
    client.annotationQueues.items.createStatus(item.id, { status: "viewed" }),
  "annotationQueues.items.update": (client, { queue, item }) =>
    client.annotationQueues.items.update(item.id, { queue_id: queue.id, last_reviewed_time: START }),
  "annotationQueues.items.deleteAll": (client, { queue, item }) =>
    client.annotationQueues.items.deleteAll(queue.id, { item_ids: [item.id] }),
  "annotationQueues.delete": (client, { other_queue }) => client.annotationQueues.delete(other_queue.id),
  deleteAnnotationQueue: (client, { queue }) => client.deleteAnnotationQueue(queue.id),

  createPrompt: (client, { prompt }) => client.createPrompt(prompt, { description: "A prompt", tags: ["a"] }),
  promptExists: (client, { prompt }) => client.promptExists(prompt),
  getPrompt: (client, { prompt }) => client.getPrompt(prompt),
  updatePrompt: (client, { prompt }) => client.updatePrompt(prompt, { readme: "# Prompt" }),
  createCommit: (client, { prompt, template }) => client.createCommit(prompt, template, { tags: ["prod"] }),
  pushPrompt: (client, { prompt }) => client.pushPrompt(prompt, { object: ChatPromptTemplate.fromTemplate("{a}") }),
  pullPromptCommit: (client, { prompt }) => client.pullPromptCommit(`${prompt}:prod`),
  listCommits: (client, { prompt }) => listed(client.listCommits(prompt)),
  listPrompts: (client, { text }) => listed(client.listPrompts({ query: text })),
  likePrompt: (client, { prompt }) => client.likePrompt(prompt),
  unlikePrompt: (client, { prompt }) => client.unlikePrompt(prompt),
  deletePrompt: (client, { prompt }) => client.deletePrompt(prompt),

  agentExists: (client, { text }) => client.agentExists(text),
  skillExists: (client, { text }) => client.skillExists(text),
  pushAgent: (client, { text }) => client.pushAgent(`a-${text}`, { files }),
  pushSkill: (client, { text }) => client.pushSkill(`s-${text}`, { files }),
  pullAgent: (client, { text }) => client.pullAgent(text),
  pullSkill: (client, { text }) => client.pullSkill(text),
  listAgents: (client) => listed(client.listAgents()),
  listSkills: (client) => listed(client.listSkills()),
  deleteAgent: (client, { text }) => client.deleteAgent(text),
  deleteSkill: (client, { text }) => client.deleteSkill(text),

  "runs.query": (client, world) => listed(client.runs.query({ project_ids: [world.project.id], ...period })),
  "runs.queryV2": (client, world) => listed(client.runs.queryV2({ project_ids: [world.project.id], ...period })),
  "runs.retrieve": (client, world) => client.runs.retrieve(world.run.id, { ...inProject(world), start_time: START }),
  "runs.retrieveV2": (client, world) =>
    client.runs.retrieveV2(world.run.id, { ...inProject(world), start_time: START }),
  "runs.getURL": (client, world) =>
    client.runs.getURL(world.run.id, { ...inProject(world), trace_id: world.run.id, start_time: START }),
  "runs.share.create": async (client, world) => {
    const session_id = world.project.id;
    const shared = await client.runs.share.create(world.run.id, { session_id, trace_id: world.run.id });
    world.public_share = shared.share_token;
  },
  "public.runs.retrieve": (client, { run, public_share }) =>
    client.public.runs.retrieve(run.id, {
      share_token: public_share ?? randomUUID(),
      selects: ["ID"],
      start_time: START,
    }),
  "public.runs.query": (client, { public_share }) =>
    client.public.runs.query(public_share ?? randomUUID(), { selects: ["ID"] }),
  "runs.share.delete": (client, { run, project }) => client.runs.share.delete(run.id, { session_id: project.id }),
  "traces.listRuns": (client, world) => client.traces.listRuns(world.run.id, { ...inProject(world), ...period }),
  "traces.query": (client, world) => listed(client.traces.query({ ...inProject(world), ...period })),
  "threads.query": (client, world) => listed(client.threads.query({ ...inProject(world), ...period })),
  "threads.listTraces": (client, world) => listed(client.threads.listTraces(world.thread, inProject(world))),
  "threads.stats": (client, world) =>
    client.threads.stats(world.thread, { session_id: world.project.id, selects: ["TURNS"] }),

  "evaluators.create": (client) => client.evaluators.create({ name: "evaluator", type: "code" }),
  "evaluators.retrieve": (client) => client.evaluators.retrieve(randomUUID()),
  "evaluators.update": (client) => client.evaluators.update(randomUUID(), { name: "renamed" }),
  "evaluators.list": (client) => listed(client.evaluators.list()),
  "evaluators.delete": (client) => client.evaluators.delete(randomUUID()),
  "evaluators.bulkDelete": (client) => client.evaluators.bulkDelete({ evaluator_ids: [randomUUID()] }),
  "evaluators.spend": (client) => client.evaluators.spend({ group_by: "evaluator" }),
  "sandboxes.*": (client) => client.sandboxes.boxes.retrieve("box"),

  cleanup: (client) => client.cleanup(),
};

/** The names of the public methods and properties, with those of the resources; the resource `sandboxes` is one name. */
export function publicMethods(): string[] {
  const declarations = readFileSync(
    join(import.meta.dirname, "../../../node_modules/langsmith/dist/client.d.ts"),
    "utf8",
  );
  const hidden = declarations.matchAll(/^\s+(?:private|protected) (?:static |readonly |get |async )*(\w+)/gm);
  const ignored = new Set(["constructor", ...[...hidden].map(([, name]) => name)]);
  const client = new Client({ apiUrl: "http://localhost", apiKey: "any", autoBatchTracing: false });
  return namesIn(client, "", ignored);
}

const isResource = (value: unknown): value is object =>
  typeof value === "object" && value !== null && "_client" in value;

function namesIn(object: Anything, path: string, ignored: Set<string | undefined>): string[] {
  const inherited = Object.getOwnPropertyNames(Object.getPrototypeOf(object));
  const own = path === "" ? [] : Object.keys(object);
  return [...new Set([...inherited, ...own])].flatMap((name) => {
    if (name.startsWith("_") || ignored.has(name)) return [];
    if (name === "sandboxes") return ["sandboxes.*"];
    return isResource(object[name])
      ? namesIn(object[name], `${path}${name}.`, new Set(["constructor"]))
      : [path + name];
  });
}

/** Calls every method on a service. */
export async function callJavaScript(url: string): Promise<CallResults> {
  const client = new Client({ apiUrl: `${url}/api/v1`, apiKey: "any", callerOptions: { maxRetries: 0 } });
  return callAll(CALLS, client, await setUp(client));
}
