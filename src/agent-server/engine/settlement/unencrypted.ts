import type { ScopedDatabase } from "../../../platform/database/database.ts";
import { NO_CONTEXT } from "../../../platform/database/encrypted-database.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { AbortReason } from "../../graph-hosts/host.ts";
import { lastEventSeq } from "../../storage/events.ts";
import type { RunRow } from "../../storage/schema.ts";
import { type SettleContext, settle } from "./settle.ts";
import { verdictOn } from "./verdict.ts";

export const isEncryptionFailure = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === "encryption_failed";

/**
 * Decrypts a run that was read without decryption, and uses its encryption context for what it stores.
 *
 * @throws ApiError encryption_failed
 */
export async function openRun(database: ScopedDatabase, run: RunRow): Promise<void> {
  // Without one, the run would have that of the request whose hint has led to its claim.
  database.context = (await database.encryption?.open(run)) ?? NO_CONTEXT;
}

/** Removes the texts of errors from the fields of a graph's log line: they may contain values that are stored encrypted. */
export function withoutErrorTexts({ message, traceback, ...fields }: Record<string, unknown>): object {
  return fields;
}

/**
 * Ends a run whose values cannot be encrypted or decrypted. Its error is the only value that is stored: it contains no data of users.
 *
 * @throws the failure, if it has another cause
 */
export async function settleUnencrypted(
  context: SettleContext,
  run: RunRow,
  failure: unknown,
  stopping: AbortReason | undefined,
): Promise<void> {
  const { encryption } = context.database;
  if (!encryption || !isEncryptionFailure(failure)) throw failure;
  const error = { error: "EncryptionError", message: failure.message };
  const verdict = verdictOn({ ended: "error", output: "null", state: undefined, error }, stopping);
  const seq = (await lastEventSeq(encryption.sealed.read, run.run_id)) + 1;
  const events = verdict.event ? [{ seq, event: verdict.event[0], data: verdict.event[1] }] : [];
  await settle(
    { ...context, database: encryption.sealed },
    {
      run,
      ...verdict,
      cancelled: stopping === "cancelled",
      state: undefined,
      error: null,
      is_silent: true,
      unwritten: { events, steps: [] },
    },
  );
}
