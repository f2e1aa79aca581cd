import { existsSync } from "node:fs";
import type { Registry } from "prom-client";
import type { Vault } from "../../access/vault.ts";
import { Engine, type FetchAs, type FindToken, type TraceStore } from "../../agent-server/engine/index.ts";
import type { GraphCatalog } from "../../agent-server/graph-catalog.ts";
import { AppHost } from "../../agent-server/graph-hosts/app-host.ts";
import type { StartHost } from "../../agent-server/graph-hosts/host.ts";
import type { PythonProcesses } from "../../agent-server/graph-hosts/python/process-host.ts";
import type { ClaimRules } from "../../agent-server/storage/claims/claims-in-turns.ts";
import { WebhookSender } from "../../agent-server/webhooks/webhook-deliveries.ts";
import { WebhookPolicy } from "../../agent-server/webhooks/webhook-policy.ts";
import type { Config } from "../../config/config.ts";
import type { ExperimentsService } from "../../experiments/worker/experiments-service.ts";
import type { Caller } from "../../platform/contract/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import type { BodyParser } from "../../platform/http/body-parser.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/safe-fetch/addresses.ts";
import type { SafeFetch } from "../../platform/lib/safe-fetch/safe-fetch.ts";
import { engineSetup, hostStarter, languageHosts, projectSetup, START_TIMEOUT_MS } from "./graph-hosts.ts";
import { fileOf } from "./open-data.ts";

export function createEngine(
  config: Config,
  database: Database,
  catalog: GraphCatalog,
  { startHost, python, vault, fetchAs, traceStore, metrics }: EngineServices,
  log: Log,
): Engine {
  const setup = () => engineSetup(config, catalog.content);
  const findToken: FindToken = async (user, request) =>
    (await vault()).flows.tokenForRun(user, request, browserUrl(config));
  return new Engine({
    settings: { ...config, claim_rules: claimRules(config) },
    database,
    languages: languageHosts(config, startHost, python),
    setup,
    log,
    metrics,
    findToken,
    fetchAs,
    traceStore,
  });
}

function claimRules(config: Config): ClaimRules | undefined {
  const { max_running_runs: per_workspace, max_running_runs_per_user: per_user, workspace_weights: weights } = config;
  const rules = { per_workspace, per_user, weights };
  return Object.values(rules).some((rule) => rule !== undefined) ? rules : undefined;
}

/** Undefined if the project has no HTTP app. */
export function createAppHost(
  config: Config,
  catalog: GraphCatalog,
  python: PythonProcesses,
  log: Log,
): AppHost | undefined {
  const { app } = config.http_app ?? {};
  if (!app) return undefined;
  const { jobs_per_worker: jobs, host_memory_mb: memory_mb, host_dead_ms: timeout_ms } = config;
  const { language, ...module } = app;
  const startHost = language === "python" ? python.starter({ role: "app", jobs, memory_mb }) : hostStarter(config);
  const setup = () => ({ ...projectSetup(config, catalog.content), app: module });
  return new AppHost({ startHost, setup, timeout_ms, start_timeout_ms: START_TIMEOUT_MS[language], log });
}

export interface EngineServices {
  /** Starts the JavaScript hosts that execute runs. */
  startHost: StartHost;
  python: PythonProcesses;
  vault: () => Promise<Vault>;
  fetchAs: FetchAs;
  metrics: Registry;
  traceStore: TraceStore | undefined;
}

/** Stores the traces of runs as if clients had sent them. */
export function traceStoreIn(config: Config, { traces }: ExperimentsService): TraceStore {
  const callerOf = (tenant_id: string): Caller => ({ tenant_id, user_id: "agent-server", scopes: ["experiments"] });
  const request = { kind: "batch" as const, content_type: "application/json", content_encoding: "", is_of_agent: true };
  return {
    async store(tenant_id, body) {
      const limits = { max_bytes: body.byteLength, deadline_ms: Number.POSITIVE_INFINITY };
      await traces.ingest(callerOf(tenant_id), request, body, limits);
    },
    async end(tenant_id, end) {
      await traces.end(callerOf(tenant_id), end);
    },
    async delete(tenant_id, run_ids) {
      // If the experiments file does not exist, there are no traces to delete, and the call would start a worker thread for nothing.
      if (!config.database_url && !existsSync(fileOf(config, "experiments"))) return;
      await traces.delete(callerOf(tenant_id), run_ids);
    },
  };
}

/** Returns the base of the URLs at which users grant tokens to runs. A run has no request with a Host header. */
const browserUrl = ({ public_url, host, port, mount_prefix }: Config): string | undefined =>
  public_url ?? (isLoopback(host) && port !== 0 ? `http://localhost:${port}${mount_prefix}` : undefined);

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
