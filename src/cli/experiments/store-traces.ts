import { randomUUID } from "node:crypto";
import type { Dataset } from "../../experiments/contract/datasets/datasets.ts";
import type { Session } from "../../experiments/contract/sessions.ts";
import { idOfName } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import { CommandError, type Target } from "../command.ts";
import { describeFailure, request, requestJson } from "../service-client.ts";

/** Reference to an experiment, which may not exist yet. */
export interface ExperimentRef {
  id: string;
  name: string;
}

/** A finished run of an example. */
export interface ExperimentRow {
  /** ID of the root run of the trace. */
  run_id: string;
  /** ID of the example. */
  row_id: string;
  /** ISO 8601 time that identifies the version of the example. Missing in rows of journals that an earlier version wrote. */
  example_version?: string | undefined;
  run_name: string;
  inputs: JsonObject;
  actual_outputs: JsonObject | null;
  error: string | null;
  /** ISO 8601. */
  start_time: string;
  end_time: string;
  evaluation_scores: JsonObject[];
}

/** Namespace of IDs derived from run IDs, so that a repeated upload stores nothing twice. It must never change. */
const NAMESPACE = "2f6b51f0-38a6-5c1e-9c0e-0d1f7e2b4a66";

/** Limits of a request. The service reports the same limits to the official clients. */
const MAX_ROWS = 100;
const MAX_CHARS = 10 * 2 ** 20;

/**
 * Stores the rows of an experiment in the same way as `evaluate()` of the official clients: each row as a trace with feedback.
 *
 * @param id of an experiment that {@link createExperiment} has created
 * @throws CommandError when the service rejects a row
 */
export async function storeTraces(target: Target, id: string, rows: readonly ExperimentRow[]): Promise<Session> {
  let body = "";
  let count = 0;
  for (const row of rows) {
    body += partsOf(id, row);
    if (++count % MAX_ROWS !== 0 && body.length < MAX_CHARS) continue;
    await send(target, body);
    body = "";
  }
  if (body !== "") await send(target, body);
  const end_time = rows
    .map((row) => row.end_time)
    .sort()
    .at(-1);
  await requestJson(target, "PATCH", `/api/v1/sessions/${id}`, { end_time });
  return requestJson<Session>(target, "GET", `/api/v1/sessions/${id}`);
}

/**
 * Creates the experiment, unless an earlier command with the same journal did so.
 *
 * @throws CommandError when the name is taken
 */
export async function createExperiment(
  target: Target,
  { id: reference_dataset_id }: Dataset,
  { id, name }: ExperimentRef,
  metadata: JsonObject,
): Promise<void> {
  const session = { id, name, reference_dataset_id, extra: { metadata } };
  const answer = await request(target, "POST", "/api/v1/sessions", [JSON.stringify(session)]);
  if (answer.status < 300) return;
  if (answer.status !== 409) throw new CommandError(describeFailure(target, answer));
  if ((await request(target, "GET", `/api/v1/sessions/${id}`)).status === 200) return;
  throw new CommandError(`Experiment "${name}" already exists; nothing was stored. Choose another name with --name.`);
}

const BOUNDARY = `threadmill-${randomUUID()}`;

async function send(target: Target, parts: string): Promise<void> {
  const type = `multipart/form-data; boundary=${BOUNDARY}`;
  const answer = await request(target, "POST", "/api/v1/runs/multipart", [parts, `--${BOUNDARY}--\r\n`], type);
  if (answer.status === 202) return;
  const reason = answer.status === 400 ? `The service rejected rows: ${answer.text}` : describeFailure(target, answer);
  throw new CommandError(reason);
}

function partsOf(session_id: string, row: ExperimentRow): string {
  const {
    run_id,
    row_id,
    example_version,
    run_name,
    start_time,
    end_time,
    inputs,
    actual_outputs: outputs,
    error,
  } = row;
  const extra = { metadata: { example_version } };
  const run = { id: run_id, trace_id: run_id, name: run_name, run_type: "chain", start_time, end_time };
  const scores = row.evaluation_scores.map((score, index) =>
    partOf(`feedback.${idOfName(`${run_id} ${index}`, NAMESPACE)}`, { ...score, run_id, session_id }),
  );
  return [
    partOf(`post.${run_id}`, { ...run, session_id, reference_example_id: row_id, extra, inputs, outputs, error }),
    ...scores,
  ].join("");
}

const partOf = (name: string, value: JsonObject): string =>
  `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\ncontent-type: application/json\r\n\r\n${JSON.stringify(value)}\r\n`;
