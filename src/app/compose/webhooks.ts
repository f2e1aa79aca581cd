import { WebhookSender } from "../../agent-server/webhooks/webhook-deliveries.ts";
import { WebhookPolicy } from "../../agent-server/webhooks/webhook-policy.ts";
import type { Config } from "../../config/config.ts";
import type { Database } from "../../platform/database/database.ts";
import type { BodyParser } from "../../platform/http/body-parser.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { SafeFetch } from "../../platform/lib/safe-fetch/safe-fetch.ts";

/** The minimum key length of the Standard Webhooks specification. */
const MIN_KEY_BYTES = 24;

export const createWebhookPolicy = ({ webhooks, http_app }: Config) =>
  new WebhookPolicy(webhooks.enabled, webhooks.url, http_app !== undefined);

/** Undefined if webhooks are disabled. */
export function createWebhookSender(
  { webhooks, webhook_keys: keys, webhook_timeout_ms, webhook_retry_ms, mount_prefix }: Config,
  database: Database,
  policy: WebhookPolicy,
  { served, body_parser }: { served: Promise<App>; body_parser: BodyParser },
  log: Log,
): WebhookSender | undefined {
  if (!webhooks.enabled) return undefined;
  if (keys.some((key) => key.byteLength < MIN_KEY_BYTES))
    log.warn({ min_bytes: MIN_KEY_BYTES }, "THREADMILL_WEBHOOK_SECRET contains a key that is too short to be secure");
  const { headers } = webhooks;
  const times = { timeout_ms: webhook_timeout_ms, retry_ms: webhook_retry_ms };
  const fetchApp: SafeFetch = async (path, init) => {
    const deadline = AbortSignal.timeout(webhook_timeout_ms);
    const signal = AbortSignal.any([deadline, ...(init?.signal ? [init.signal] : [])]);
    const request = new Request(`http://localhost${mount_prefix}${path}`, { ...init, signal });
    const response = await (await served).fetch(request, { origin: "webhook" });
    if (deadline.aborted) throw new Error(`The route did not respond within ${webhook_timeout_ms} ms.`);
    signal.throwIfAborted();
    void response.body?.cancel().catch(() => undefined);
    return response;
  };
  return new WebhookSender({ database, policy, fetchApp, headers, keys, body_parser, ...times, log });
}
