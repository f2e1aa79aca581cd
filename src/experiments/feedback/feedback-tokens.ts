import { randomUUID } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, writeUnique } from "../../platform/database/database.ts";
import { ApiError, InvalidRequestError } from "../../platform/errors.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type { FeedbackToken, FeedbackTokenCreate, TokenFeedback } from "../contract/feedback/feedback-tokens.ts";
import { findToken, insertTokens, listTokens } from "../storage/feedback-tokens.ts";
import type { FeedbackTokenRow } from "../storage/traces/trace-schema.ts";
import { storeFeedback } from "./feedback.ts";
import { insertMissingConfigs } from "./feedback-configs.ts";

const DEFAULT_MS = 3 * 3_600_000;
const MAX_MS = 3_650 * 86_400_000;

/** Operations on tokens that let web pages send feedback on a run without an API key. */
export const feedbackTokenOperations = (database: Database) => ({
  /** @param base_url the address of this API as the client sees it */
  async create(
    { tenant_id }: Caller,
    body: FeedbackTokenCreate | FeedbackTokenCreate[],
    base_url: string,
  ): Promise<FeedbackToken | FeedbackToken[]> {
    const inputs = [body].flat();
    const rows = await database.write(async (tx) => {
      const now = await readNow(tx);
      const created = inputs.map((input) => ({
        // The token grants access: it must be random, not a time-ordered id.
        token: randomUUID(),
        tenant_id,
        run_id: input.run_id,
        feedback_id: input.id ?? null,
        feedback_key: input.feedback_key,
        expires_at: expiryOf(input, now),
        created_at: now,
      }));
      await insertTokens(tx, created);
      const configs = inputs.map(({ feedback_key: key, feedback_config }) => ({ key, feedback_config }));
      await insertMissingConfigs(tx, tenant_id, configs);
      return created;
    });
    const tokens = rows.map((row) => toToken(row, base_url));
    return Array.isArray(body) ? tokens : (tokens[0] as FeedbackToken);
  },

  async list(
    { tenant_id }: Caller,
    query: { run_id: string; limit: number; offset: number },
    base_url: string,
  ): Promise<FeedbackToken[]> {
    return (await listTokens(database.read, tenant_id, query)).map((row) => toToken(row, base_url));
  },

  /** @throws ApiError when the token is unknown or has expired */
  async send(token: string, { metadata, ...values }: TokenFeedback): Promise<{ message: string }> {
    await writeUnique(database, async (tx) => {
      const row = await findToken(tx, token);
      if (!row) throw new ApiError("feedback_token_not_found");
      const { tenant_id, run_id, feedback_id, feedback_key: key } = row;
      const feedback_source = { type: "api", metadata };
      const body = { ...values, run_id, key, feedback_source, ...(feedback_id !== null && { id: feedback_id }) };
      await storeFeedback(tx, { tenant_id }, body, { replaces: "any" });
    });
    return { message: "Feedback stored" };
  },
});

function expiryOf({ expires_at, expires_in }: FeedbackTokenCreate, now: number): number {
  const { days, hours, minutes } = expires_in ?? { days: 0, hours: 0, minutes: DEFAULT_MS / 60_000 };
  const length = ((days * 24 + hours) * 60 + minutes) * 60_000;
  const expiry = Math.round(expires_at === undefined ? now + length : expires_at / 1000);
  if (expiry > now && expiry <= now + MAX_MS) return expiry;
  const msg = "Value error, the expiration time must be in the future and at most 3650 days from now";
  throw new InvalidRequestError([{ loc: ["body"], msg, type: "value_error" }]);
}

const toToken = ({ token, expires_at }: FeedbackTokenRow, base_url: string): FeedbackToken => ({
  id: token,
  url: `${base_url}/feedback/tokens/${token}`,
  expires_at: isoOfMilliseconds(expires_at),
});
