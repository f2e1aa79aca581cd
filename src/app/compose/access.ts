import { Access } from "../../access/access.ts";
import { OngoingRequests } from "../../access/context.ts";
import type { Seal } from "../../access/encryption/seal.ts";
import { hasApiKeys } from "../../access/storage/api-keys.ts";
import type { Vault } from "../../access/vault.ts";
import { CustomAuth } from "../../agent-server/auth/custom-auth.ts";
import type { GraphCatalog } from "../../agent-server/graph-catalog.ts";
import type { PythonProcesses } from "../../agent-server/graph-hosts/python/process-host.ts";
import { QueryHost } from "../../agent-server/graph-hosts/query-host.ts";
import { startInThread } from "../../agent-server/graph-hosts/start-host.ts";
import type { Config } from "../../config/config.ts";
import type { Database } from "../../platform/database/database.ts";
import { ConfigError } from "../../platform/errors.ts";
import { systemClock } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/safe-fetch/addresses.ts";
import { createSafeFetch } from "../../platform/lib/safe-fetch/safe-fetch.ts";
import { START_TIMEOUT_MS } from "./graph-hosts.ts";

/** The largest responses of OAuth providers are discovery documents of a few KB. */
const MAX_PROVIDER_BYTES = 1_000_000;

/** Imports the vault while the graph hosts load the graphs on another core. */
export async function openVault(config: Config, database: Database, seal: Seal, log: Log): Promise<Vault> {
  const { createVault } = await import("../../access/vault.ts");
  const fetch_rules = { allow_loopback: config.allow_loopback_oauth };
  const fetch = createSafeFetch(fetch_rules, { timeout_ms: config.provider_timeout_ms, max_bytes: MAX_PROVIDER_BYTES });
  return createVault({
    database,
    seal,
    fetch,
    fetch_rules,
    clock: systemClock,
    log,
    settings: config,
    ongoing: new OngoingRequests(),
  });
}

/** The length of 16 random bytes in hexadecimal. Shorter keys can be guessed. */
const MIN_KEY_LENGTH = 32;

export async function createAccess(
  { api_keys, oidc, auth, ...address }: Config,
  database: Database,
  log: Log,
): Promise<Access> {
  const weak = api_keys.filter((key) => key.length < MIN_KEY_LENGTH).length;
  if (weak > 0)
    log.warn(
      { keys: weak, min_length: MIN_KEY_LENGTH },
      "API_KEYS contains at least one key with fewer than 32 characters: short keys can be guessed",
    );
  const issuer = oidc && new (await import("../../access/oidc-issuer.ts")).OidcIssuer(oidc);
  return new Access({ database, log, api_keys, issuer, may_be_open: isLocal(address) && !auth });
}

/** An inherited socket may listen on any address. */
const isLocal = ({ host, listen_fd }: Pick<Config, "host" | "listen_fd">): boolean =>
  listen_fd === undefined && isLoopback(host);

/** @throws ConfigError if the service would accept requests without authentication on an address other than loopback */
export async function requireAuthentication(
  { command, api_keys, oidc, auth, ...address }: Config,
  database: Database,
): Promise<void> {
  if (isLocal(address) || api_keys.length > 0 || oidc || auth || (await hasApiKeys(database.read))) return;
  const where = address.listen_fd === undefined ? address.host : "an inherited socket";
  throw new ConfigError(
    `${command} would accept unauthenticated requests on ${where}: create a key with "threadmill keys create", set API_KEYS to one or more keys (comma-separated), or listen on 127.0.0.1 with --host.`,
  );
}

/** Memory limits of the handlers' hosts: enough for keys and user directories, because handlers allocate little. */
const MEMORY_MB = { js: 256, python: 512 };

/** Returns undefined without `auth.path`. The handlers always run in a host of their own, because every request waits for them. */
export function createCustomAuth(
  config: Config,
  catalog: GraphCatalog,
  python: PythonProcesses,
  log: Log,
): CustomAuth | undefined {
  const { auth, project_dir, python_project, host_memory_mb, jobs_per_worker: jobs, public_url } = config;
  if (!auth) return undefined;
  const { language, ...module } = auth.module;
  const memory_mb = Math.min(host_memory_mb, MEMORY_MB[language]);
  const host = new QueryHost({
    startHost: language === "python" ? python.starter({ role: "auth", jobs, memory_mb }) : startInThread(memory_mb),
    setup: () => ({
      graphs: [],
      env: catalog.content.graph_env,
      project_dir,
      python: python_project,
      auth: module,
    }),
    onRequest: () =>
      Promise.reject(new Error("Handlers of the authentication module cannot send requests to the service.")),
    timeout_ms: config.auth_timeout_ms,
    ping_timeout_ms: config.host_silent_ms,
    start_timeout_ms: START_TIMEOUT_MS[language],
    log,
  });
  return new CustomAuth({ host, cache: auth.cache, public_url, prefix: config.mount_prefix, catalog, log });
}
