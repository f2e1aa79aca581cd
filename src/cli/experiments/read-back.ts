import type { ExampleWithRuns } from "../../experiments/contract/comparison.ts";
import type { Dataset } from "../../experiments/contract/datasets.ts";
import type { Feedback } from "../../experiments/contract/feedback.ts";
import type { Session } from "../../experiments/contract/sessions.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { ask, askJson, jsonOf, refusal, type Target } from "./api.ts";
import { CommandError } from "./command-error.ts";

/** Records that are asked for at a time; the service gives no more than 100 in every route. */
const PAGE = 100;

/** The experiment of an id, with its statistics; undefined when there is none. */
export async function findExperiment(target: Target, id: string): Promise<Session | undefined> {
  const answer = await ask(target, "GET", `/sessions/${id}?include_stats=true`);
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw new CommandError(refusal(target, answer));
  return jsonOf(target, answer) as Session;
}

/** The experiment of a name, with its statistics. @throws CommandError when there is none */
export async function findByName(target: Target, name: string): Promise<Session> {
  const query = new URLSearchParams({ name, include_stats: "true" });
  const [session] = (await askJson(target, "GET", `/sessions?${query}`)) as Session[];
  if (session) return session;
  throw new CommandError(`There is no experiment "${name}" at ${target.url}: give its name or id.`);
}

export async function datasetOf(target: Target, { name, reference_dataset_id }: Session): Promise<Dataset> {
  if (reference_dataset_id === null)
    throw new CommandError(`The experiment "${name}" belongs to no dataset, so it has no rows to write.`);
  return (await askJson(target, "GET", `/datasets/${reference_dataset_id}`)) as Dataset;
}

/** The scores of the experiment as a whole, as an upload has them. */
export async function summaryOf(target: Target, { id }: Session): Promise<JsonObject[]> {
  const scores: JsonObject[] = [];
  for (let offset = 0; ; offset += PAGE) {
    const query = new URLSearchParams({ session: id, level: "session", limit: `${PAGE}`, offset: `${offset}` });
    const page = (await askJson(target, "GET", `/feedback?${query}`)) as Feedback[];
    scores.push(...page.map(scoreOf));
    if (page.length < PAGE) return scores;
  }
}

/** The rows of an experiment, as an upload has them, page by page. */
export async function* rowsOf(
  target: Target,
  session: Session,
  onRows: (n: number) => void,
): AsyncGenerator<JsonObject> {
  for (let offset = 0; ; offset += PAGE) {
    const body = { session_ids: [session.id], offset, limit: PAGE };
    const page = (await askJson(
      target,
      "POST",
      `/datasets/${session.reference_dataset_id}/runs`,
      body,
    )) as ExampleWithRuns[];
    const rows = page.flatMap(rowsOfExample);
    yield* rows;
    onRows(rows.length);
    if (page.length < PAGE) return;
  }
}

/** A row for each time that the example was tried. */
function rowsOfExample({ id, inputs, outputs, runs }: ExampleWithRuns): JsonObject[] {
  return runs.map((run) => {
    const metadata = run.extra?.metadata;
    return given({
      row_id: id,
      inputs: run.inputs ?? inputs,
      expected_outputs: outputs,
      actual_outputs: run.outputs,
      evaluation_scores: run.feedbacks.length > 0 ? run.feedbacks.map(scoreOf) : null,
      start_time: run.start_time,
      end_time: run.end_time,
      run_name: run.name,
      error: run.error,
      run_metadata: isObject(metadata) && Object.keys(metadata).length > 0 ? metadata : null,
    });
  });
}

/** Without the ids of the feedback and of its comparison, which belong to the experiment that is there already. */
function scoreOf(feedback: Feedback): JsonObject {
  const { key, score, value, comment, correction, feedback_source, feedback_group_id, extra, created_at, modified_at } =
    feedback;
  const source = typeof feedback_source?.type === "string" ? feedback_source : null;
  const judgement = { key, score, value, comment, correction, feedback_source: source, feedback_group_id, extra };
  return given({ ...judgement, created_at, modified_at });
}

const given = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
