import type { Database } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Log } from "../../platform/lib/log.ts";
import { unlessAborted } from "../../platform/lib/unless-aborted.ts";
import type { TokenAnswer, TokenRequest } from "../graph-hosts/host.ts";
import { holdsLease } from "../storage/run-leases.ts";
import type { RunRow } from "../storage/schema.ts";
import { type RunUser, userOf } from "./run-user.ts";

/**
 * A token of a run's user, or where to send them for one.
 *
 * @throws ApiError for the graph's author: the provider is unknown, or renews no token right now
 */
export type FindToken = (user: RunUser, request: TokenRequest) => Promise<TokenAnswer>;

/** A refresh may take THREADMILL_OAUTH_TIMEOUT_MS (10 s), and waiting for one of somebody else 5 s more. */
const MAX_MS = 30_000;

export interface TokenRequestOptions {
  database: Database;
  log: Log;
  findToken: FindToken;
}

/**
 * Answers the question of a run's graph for a token, while the run is running at this epoch: looked at before, so that nothing is
 * begun for a run that is over, and after, so that nothing is given out to one. The answer goes to the host and nowhere else. A
 * run that is stopped does not wait for it: its host gives the question up.
 */
export async function answerTokenRequest(
  run: RunRow,
  request: TokenRequest,
  options: TokenRequestOptions,
  at_most_ms = MAX_MS,
): Promise<TokenAnswer> {
  await refuseUnlessHeld(options.database, run);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(`There was no token within ${at_most_ms} ms.`)), at_most_ms);
  try {
    const answer = await unlessAborted(late.signal, ask(run, request, options));
    await refuseUnlessHeld(options.database, run);
    return answer;
  } finally {
    clearTimeout(timer);
  }
}

async function ask(run: RunRow, request: TokenRequest, options: TokenRequestOptions): Promise<TokenAnswer> {
  try {
    return await options.findToken(userOf(run), request);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The graph's error becomes the run's, which others read.
    options.log.error({ error, run_id: run.run_id }, "a run's question for a token could not be answered");
    throw new ApiError("internal");
  }
}

/** @throws Error when the run is stopped or belongs to another worker */
export async function refuseUnlessHeld({ read }: Database, run: RunRow): Promise<void> {
  if (!(await holdsLease(read, run))) throw new Error("The run is stopped, or is no longer executed here.");
}
