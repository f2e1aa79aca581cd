import { randomUUID } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { ExperimentRun, RunQuery } from "../contract/runs.ts";
import type { RunV2 } from "../contract/v2/runs.ts";
import { selectedNames } from "../serialization/run-records.ts";
import { lockExperiment } from "../storage/experiments.ts";
import { rowKeysOf } from "../storage/runs.ts";
import { deleteShareOfRun, findShare, findShareOfRun, insertShare } from "../storage/traces/run-shares.ts";
import type { RunShareRow, TraceRunRow } from "../storage/traces/trace-schema.ts";
import type { TreePart } from "../storage/traces/trace-search.ts";
import { type AttachmentInfo, attachmentOf, findTraceRuns } from "../storage/traces/traces.ts";
import { type AnyRunSearch, toSearch } from "./run-search.ts";
import { findWithFeedback, fullRun, listedRuns, queryPage, readPage, toAnyRunV2 } from "./runs.ts";

/** Fields that shared runs do not contain in version 2: payloads, attachments and addresses. */
const PRIVATE = new Set(["INPUTS", "OUTPUTS", "EVENTS", "MANIFEST", "ATTACHMENTS", "APP_PATH", "SHARE_URL"]);

const MAX_LISTED = 1_000;
const MAX_RUNS_OF_TRACE = 25_000;

export const runShareOperations = (database: Database) => ({
  async read(caller: Caller, run_id: string): Promise<Partial<Pick<RunShareRow, "run_id" | "share_token">>> {
    await getRun(database.read, caller, run_id);
    const share = await findShareOfRun(database.read, caller.tenant_id, run_id);
    return share ? { run_id, share_token: share.share_token } : {};
  },

  /**
   * @param token chosen by the client
   * @param shares_trace whether the root of the trace is shared instead of the run, as in version 2
   * @throws ApiError when the run does not exist, or another run has the token
   */
  async share({ tenant_id, ...caller }: Caller, of_run: string, token?: string, shares_trace = false) {
    return writeUnique(database, async (tx) => {
      const { experiment_no, trace_id } = await getRun(tx, { ...caller, tenant_id }, of_run);
      const run_id = shares_trace ? trace_id : of_run;
      if (!(await lockExperiment(tx, experiment_no))) throw new ApiError("run_not_found");
      const existing = await findShareOfRun(tx, tenant_id, run_id);
      if (existing) return { run_id, share_token: existing.share_token };
      const share_token = token ?? randomUUID();
      if (!(await insertShare(tx, { tenant_id, run_id, share_token }))) throw new ApiError("share_exists");
      return { run_id, share_token };
    });
  },

  async unshare(caller: Caller, run_id: string): Promise<void> {
    await database.write(async (tx) => {
      await getRun(tx, caller, run_id);
      await deleteShareOfRun(tx, caller.tenant_id, run_id);
    });
  },
});

async function getRun(
  tx: Tx,
  { tenant_id }: Caller,
  run_id: string,
): Promise<Pick<TraceRunRow, "experiment_no" | "trace_id">> {
  const [traced] = await findTraceRuns(tx, tenant_id, [run_id]);
  if (traced) return traced;
  const uploaded = (await rowKeysOf(tx, tenant_id, [run_id])).get(run_id);
  if (!uploaded) throw new ApiError("run_not_found");
  return { experiment_no: uploaded.experiment_no, trace_id: run_id };
}

/** Operations that read shared runs. The token of the share replaces the API key. */
export const sharedRunOperations = ({ read }: Database) => ({
  /** @param run_id a run of the share; undefined for the shared run itself */
  async read(token: string, run_id: string | undefined, base_url: string): Promise<ExperimentRun> {
    const share = await openShare(read, token);
    const found = await findWithFeedback(read, share, run_id ?? share.run_id);
    if (!includes(share, found.run)) throw new ApiError("run_not_found");
    return publicRun(await fullRun(read, found, sharedUrl(base_url, token)), share);
  },

  async list(token: string, id: string[] | undefined, base_url: string): Promise<ExperimentRun[]> {
    const share = await openShare(read, token);
    const page = { descending: false, cursor: undefined, limit: MAX_LISTED, payloads: true };
    const { items } = await readPage(read, share, within(share, await toSearch(read, share, { id })), page);
    const runs = await listedRuns(read, items, sharedUrl(base_url, token));
    return runs.map((run) => publicRun(run, share));
  },

  async query(token: string, body: RunQuery, base_url: string) {
    const share = await openShare(read, token);
    const search = within(share, await toSearch(read, share, body));
    return queryPage(read, share, search, body, {
      urlOf: sharedUrl(base_url, token),
      adapt: (run) => publicRun(run, share),
    });
  },

  /** @throws ApiError when the token is unknown, the run is not in the share, or the run has no attachment with this name */
  async findAttachment(token: string, run_id: string, name: string): Promise<AttachmentInfo> {
    const share = await openShare(read, token);
    const [run] = await findTraceRuns(read, share.tenant_id, [run_id]);
    const found = run && includes(share, run) ? await attachmentOf(read, run.run_no, name) : undefined;
    if (!found) throw new ApiError("not_found");
    return found;
  },

  /** All runs of the share in version 2, by start time. */
  async queryV2(token: string, selects: string[] | undefined): Promise<{ items: Partial<RunV2>[] }> {
    const share = await openShare(read, token);
    const page = { descending: false, cursor: undefined, limit: MAX_RUNS_OF_TRACE, payloads: false };
    const { items } = await readPage(read, share, within(share, await toSearch(read, share, {})), page);
    const names = selectedNames(publicFields(selects));
    return { items: items.map((found) => toAnyRunV2(found, "", names)) };
  },

  async readV2(token: string, run_id: string, selects: string[] | undefined): Promise<Partial<RunV2>> {
    const share = await openShare(read, token);
    const found = await findWithFeedback(read, share, run_id);
    if (!includes(share, found.run)) throw new ApiError("run_not_found");
    return toAnyRunV2(found, "", selectedNames(publicFields(selects)));
  },
});

/** Attachments of shared runs can be downloaded until the run is not shared any more. */
const sharedUrl =
  (base_url: string, share_token: string) =>
  ({ name }: { name: string }, run_id: string): string =>
    `${base_url}/public/${share_token}/run/${run_id}/attachments/${encodeURIComponent(name)}`;

interface OpenShare extends RunShareRow {
  /** The shared part of a trace; undefined for an uploaded run. */
  part: TreePart | undefined;
}

/** @throws ApiError when the token is unknown, or the run was deleted */
async function openShare(read: Tx, token: string): Promise<OpenShare> {
  const share = await findShare(read, token);
  if (!share) throw new ApiError("share_not_found");
  const [run] = await findTraceRuns(read, share.tenant_id, [share.run_id]);
  if (!run) return { ...share, part: undefined };
  const { trace_id, dotted_order, is_root } = run;
  return { ...share, part: { trace_id, below_order: is_root === 1 ? undefined : dotted_order } };
}

function includes({ part, run_id }: OpenShare, run: { run_id: string } & Partial<TraceRunRow>): boolean {
  if (run.run_id === run_id) return true;
  if (!part || run.trace_id !== part.trace_id) return false;
  return part.below_order === undefined || run.dotted_order?.startsWith(`${part.below_order}.`) === true;
}

function within({ part, run_id }: OpenShare, { uploaded, traced }: AnyRunSearch): AnyRunSearch {
  if (part) return { uploaded: undefined, traced: traced && { ...traced, part } };
  const id = (uploaded?.id ?? [run_id]).filter((each) => each === run_id);
  return { uploaded: uploaded && { ...uploaded, id }, traced: undefined };
}

/** Leaves out the workspace, and the tokens of other shares. */
const publicRun = (run: ExperimentRun, { share_token, run_id }: OpenShare): ExperimentRun => ({
  ...run,
  share_token: run.id === run_id ? share_token : null,
  app_path: `/public/${share_token}/r`,
});

const publicFields = (selects: string[] | undefined): string[] | undefined =>
  selects && ["ID", ...selects.filter((name) => !PRIVATE.has(name))];
