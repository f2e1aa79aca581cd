import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type { Run } from "../contract/records.ts";
import type { RunKwargs } from "../graph-hosts/host.ts";
import type { RunRow } from "../storage/schema.ts";
import { findThread } from "../storage/threads.ts";
import { filterOf } from "./grants.ts";

/**
 * Returns the run if the caller can access its thread, or has created it as a stateless run, whose thread is deleted when the run ends.
 *
 * @throws ApiError run_not_found
 */
export async function requireAccessToRun(tx: Tx, caller: Caller, run: RunRow | undefined): Promise<RunRow> {
  if (!run) throw new ApiError("run_not_found");
  const filter = filterOf(caller, "threads");
  if (!filter || isOwnStateless(caller, run)) return run;
  if (await findThread(tx, run.tenant_id, run.thread_id, filter)) return run;
  throw new ApiError("run_not_found");
}

function isOwnStateless({ user_id }: Caller, { temporary, kwargs }: RunRow): boolean {
  if (temporary === 0) return false;
  const { is_custom_user, config } = JSON.parse(kwargs) as RunKwargs;
  return is_custom_user === true && config.configurable?.user_id === user_id;
}

/** Returns the `kwargs` of a run as JSON, without the user object of an authentication handler, which may contain tokens. */
export function publicKwargs({ kwargs }: RunRow): string {
  if (!kwargs.includes('"is_custom_user":true')) return kwargs;
  const parsed = JSON.parse(kwargs) as RunKwargs;
  if (parsed.is_custom_user) delete parsed.config.configurable?.langgraph_auth_user;
  return JSON.stringify(parsed);
}

/** Returns a run as the API shows it. */
export function toRun(row: RunRow): Run {
  return {
    run_id: row.run_id,
    thread_id: row.thread_id,
    assistant_id: row.assistant_id,
    created_at: isoOfMilliseconds(row.created_at),
    updated_at: isoOfMilliseconds(row.updated_at),
    status: row.status,
    metadata: JSON.parse(row.metadata),
    kwargs: JSON.parse(publicKwargs(row)),
    multitask_strategy: row.multitask_strategy,
    ...(row.cancel_reason !== null && { cancel_reason: row.cancel_reason }),
  };
}
