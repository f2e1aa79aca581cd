import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, sealedOf } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { BodyParser } from "../../platform/http/body-parser.ts";
import type { BackgroundService } from "../../platform/lib/background-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import { createSafeFetch, FetchRefusedError, type SafeFetch } from "../../platform/lib/safe-fetch/safe-fetch.ts";
import { Signal, withTimeout } from "../../platform/lib/signal.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { filterOf } from "../auth/grants.ts";
import type { WebhookDelivery, WebhookDeliveryQuery } from "../contract/webhooks.ts";
import {
  type AttemptResult,
  type ClaimedDelivery,
  claimWebhookDeliveries,
  endDelivery,
  type ListedDelivery,
  listWebhookDeliveries,
  msUntilNextDelivery,
  requeueDeliveries,
  retryDelivery,
} from "../storage/webhooks.ts";
import { isPath, type WebhookPolicy } from "./webhook-policy.ts";

/** The webhooks of a workspace's runs. {@link WebhookSender} sends them. */
export class WebhookDeliveries {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(caller: Caller, query: WebhookDeliveryQuery): Promise<WebhookDelivery[]> {
    const access = filterOf(caller, "threads");
    return (await listWebhookDeliveries(this.#database.read, caller.tenant_id, { ...query, access })).map(toDelivery);
  }

  /** @throws ApiError webhook_not_found, webhook_delivered */
  async redeliver(caller: Caller, run_id: string): Promise<WebhookDelivery> {
    const { tenant_id } = caller;
    const access = filterOf(caller, "threads");
    const row = await this.#database.write(async (tx) => {
      const [found] = await listWebhookDeliveries(tx, tenant_id, { run_id, limit: 1, offset: 0, access });
      if (!found) throw new ApiError("webhook_not_found", { run_id });
      const [queued] = await requeueDeliveries(tx, { tenant_id, run_id });
      if (!queued) throw new ApiError("webhook_delivered", { run_id });
      return queued;
    });
    this.#database.hints.emit({ kind: "webhooks" });
    return toDelivery(row);
  }
}

const toDelivery = ({ tenant_id: _, next_at, created_at, updated_at, ...row }: ListedDelivery): WebhookDelivery => ({
  ...row,
  next_attempt_at: next_at === null ? null : isoOfMilliseconds(next_at),
  created_at: isoOfMilliseconds(created_at),
  updated_at: isoOfMilliseconds(updated_at),
});

/** Maximum time between two claims. A notification usually triggers the next claim earlier. */
const MAX_WAIT_MS = 5_000;
const MAX_STOP_MS = 2_000;

/** Maximum concurrent requests. The limit per origin prevents a receiver that does not respond from using all of them. */
const MAX_REQUESTS = 20;
const MAX_REQUESTS_OF_ORIGIN = 8;

/** The time that a process has, after the time limit of a request, to store its result. */
const LEASE_MARGIN_MS = 3_000;

const MAX_DELAY_MS = 3_600_000;
const MAX_RETRY_MS = 24 * 3_600_000;

/** In Standard Webhooks, the status of a receiver that has unsubscribed. */
const UNSUBSCRIBED = 410;

interface WebhookSenderOptions {
  database: Database;
  policy: WebhookPolicy;
  /** Sends a request to a route of the project, within this process. */
  fetchApp: SafeFetch;
  /** Headers of every webhook. Push notifications do not have them: their receivers belong to callers. */
  headers: Readonly<Record<string, string>>;
  /** Keys of the signatures: several while a key is replaced, none for requests without signature. */
  keys: readonly Uint8Array<ArrayBuffer>[];
  body_parser: Pick<BodyParser, "lastItems">;
  /** Time limit of a request. */
  timeout_ms: number;
  /** Delay before the first retry; each later delay is twice as long, up to an hour. */
  retry_ms: number;
  log: Log;
}

/**
 * Sends the webhooks and push notifications of ended runs. Any number of processes may do this: a claim gives a delivery to one of them for
 * the duration of a request. Each delivery is sent at least once: if its process dies before it stores the result, another process sends it
 * again.
 */
export class WebhookSender implements BackgroundService {
  readonly #options: WebhookSenderOptions;
  readonly #fetch: SafeFetch;
  /** The origins of the deliveries in progress. */
  readonly #sending = new Map<Promise<void>, string>();
  readonly #changed = new Signal();
  readonly #requests = new AbortController();
  readonly #removeListener: () => void;
  #isStopped = false;
  #loop: Promise<void> | undefined;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
    // Only the status counts: a receiver that responds with a large or slow body has received the webhook.
    this.#fetch = createSafeFetch(options.policy.rules, { timeout_ms: options.timeout_ms, max_bytes: "ignore_body" });
    this.#removeListener = options.database.hints.listen("webhooks", this.#changed.notify);
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Requests that are still in progress after two seconds are aborted, and sent again later. */
  async stop(): Promise<void> {
    this.#removeListener();
    this.#isStopped = true;
    this.#changed.notify();
    if (this.#loop) await withTimeout(this.#loop, MAX_STOP_MS);
    this.#requests.abort(new Error("The service stopped before the receiver responded."));
    if (this.#loop) await withTimeout(this.#loop, MAX_STOP_MS);
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    while (!this.#isStopped) {
      this.#changed.reset();
      const wait_ms = await this.#claim().catch((error) => {
        if (!this.#isStopped) log.error({ error }, "claiming webhooks failed");
        return MAX_WAIT_MS;
      });
      if (wait_ms > 0 && !this.#isStopped) await this.#changed.wait(wait_ms);
    }
    await Promise.all(this.#sending.keys());
  }

  /** Claims deliveries that are due, and starts to send them. Returns the time until the next claim. */
  async #claim(): Promise<number> {
    const { database, timeout_ms } = this.#options;
    const free = MAX_REQUESTS - this.#sending.size;
    if (free === 0) return MAX_WAIT_MS;
    const by_origin = [...Map.groupBy(this.#sending.values(), (origin) => origin)];
    const full = by_origin.filter(([, sending]) => sending.length >= MAX_REQUESTS_OF_ORIGIN);
    const except_origins = full.map(([origin]) => origin);
    const next_ms = await msUntilNextDelivery(database.read, except_origins);
    if (next_ms === undefined || next_ms > 0) return Math.min(MAX_WAIT_MS, next_ms ?? MAX_WAIT_MS);
    // All claimed deliveries may have the same origin.
    const busiest = Math.max(
      0,
      ...by_origin.filter((each) => !full.includes(each)).map(([, sending]) => sending.length),
    );
    const limit = Math.min(free, MAX_REQUESTS_OF_ORIGIN - busiest);
    const lease_ms = timeout_ms + LEASE_MARGIN_MS;
    // Each is decrypted when it is sent, so that one that cannot be decrypted does not stop the others.
    const claim = { lease_ms, limit, except_origins };
    const claimed = await sealedOf(database).write((tx) => claimWebhookDeliveries(tx, claim));
    for (const delivery of claimed) {
      const sending = this.#deliver(delivery).finally(() => {
        this.#sending.delete(sending);
        this.#changed.notify();
      });
      this.#sending.set(sending, delivery.origin);
    }
    return 0;
  }

  /** Sends a delivery once, and stores the result. Never rejects. */
  async #deliver(delivery: ClaimedDelivery): Promise<void> {
    const { database, retry_ms, log } = this.#options;
    const { run_id, delivery_id, tenant_id, attempts } = delivery;
    try {
      const { isFinal, ...result } = await this.#send(delivery);
      const fields = { run_id, delivery_id, workspace_id: tenant_id, ...result, attempts };
      if (result.error === null) {
        await database.write((tx) => endDelivery(tx, delivery, { ...result, status: "delivered" }));
        return log.info(fields, "webhook delivered");
      }
      const delay_ms = Math.round(Math.min(MAX_DELAY_MS, retry_ms * 2 ** (attempts - 1)) * (0.8 + 0.4 * Math.random()));
      if (isFinal || delivery.next_at + delay_ms > delivery.queued_at + MAX_RETRY_MS) {
        await database.write((tx) => endDelivery(tx, delivery, { ...result, status: "failed" }));
        return log.warn(fields, "webhook failed");
      }
      await database.write((tx) => retryDelivery(tx, delivery, result, delay_ms));
      log.info({ ...fields, delay_ms }, "webhook attempt failed");
    } catch (error) {
      // When the lease has expired, a process sends the delivery again.
      if (!this.#isStopped) log.error({ run_id, error }, "storing the webhook result failed");
    }
  }

  /** Sends one request and returns its result, which is final if no later request can succeed. */
  async #send(delivery: ClaimedDelivery): Promise<AttemptResult & { isFinal: boolean }> {
    const { policy, keys, fetchApp } = this.#options;
    const { delivery_id, url } = delivery;
    const refusal = policy.refusal(url);
    if (refusal !== undefined) return { response_status: null, error: refusal, isFinal: true };
    const now = Date.now();
    try {
      await this.#options.database.encryption?.open(delivery);
      const { text, headers } = await this.#contentOf(delivery, now);
      const body = Buffer.from(text);
      const timestamp = String(Math.floor(now / 1000));
      const signatures = await Promise.all(keys.map((key) => sign(key, `${delivery_id}.${timestamp}.`, body)));
      const { status } = await (isPath(url) ? fetchApp : this.#fetch)(url, {
        method: "POST",
        redirect: "manual",
        body,
        signal: this.#requests.signal,
        headers: {
          ...headers,
          "webhook-id": delivery_id,
          "webhook-timestamp": timestamp,
          ...(signatures.length > 0 && { "webhook-signature": signatures.join(" ") }),
        },
      });
      if (status >= 200 && status < 300) return { response_status: status, error: null, isFinal: false };
      return { response_status: status, error: statusError(status), isFinal: status === UNSUBSCRIBED };
    } catch (error) {
      const { message } = error as Error;
      return { response_status: null, error: message, isFinal: error instanceof FetchRefusedError };
    }
  }

  async #contentOf({ payload, push }: ClaimedDelivery, now: number): Promise<{ text: string; headers: object }> {
    const { headers, body_parser } = this.#options;
    if (push === null) {
      const text = `${payload.slice(0, -1)},"webhook_sent_at":"${isoOfMilliseconds(now)}"}`;
      return { text, headers: { ...headers, "content-type": "application/json" } };
    }
    // Imported with the first notification: most services have no A2A clients.
    const { notificationOf } = await import("../protocols/a2a/server.ts");
    return notificationOf(push, payload, body_parser);
  }
}

const statusError = (status: number): string =>
  status >= 300 && status < 400
    ? `The receiver responded with a redirect (${status}). Redirects are not followed: use the final URL.`
    : `The receiver responded with status ${status}.`;

/** Creates a signature of Standard Webhooks. SubtleCrypto works outside of the serving thread: a payload can be several megabytes. */
async function sign(key: Uint8Array<ArrayBuffer>, prefix: string, body: Uint8Array): Promise<string> {
  const hmac = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", hmac, Buffer.concat([Buffer.from(prefix), body]));
  return `v1,${Buffer.from(signature).toString("base64")}`;
}
