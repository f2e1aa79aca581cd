import { Access } from "../../access/access.ts";
import type { Seal } from "../../access/encryption/seal.ts";
import { hasApiKeys } from "../../access/storage/api-keys.ts";
import type { Vault } from "../../access/vault.ts";
import type { Config } from "../../config/config.ts";
import type { Database } from "../../platform/database/database.ts";
import { ConfigError } from "../../platform/errors.ts";
import { systemClock } from "../../platform/lib/clock.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/loopback.ts";
import { createSafeFetch } from "../../platform/lib/safe-fetch.ts";

/** Of an answer of an OAuth provider; the largest are discovery documents, of some KB. */
const MAX_PROVIDER_BYTES = 1_000_000;

/** Loaded while the graph hosts load the graphs on another core, as the HTTP part is. */
export async function openVault(config: Config, database: Database, seal: Seal, log: Log): Promise<Vault> {
  const { createVault } = await import("../../access/vault.ts");
  const fetch_rules = { allow_loopback: config.allow_loopback_oauth };
  const limits = { timeout_ms: config.provider_timeout_ms, max_bytes: MAX_PROVIDER_BYTES };
  const fetch = createSafeFetch(fetch_rules, limits);
  return createVault({ database, seal, fetch, fetch_rules, clock: systemClock, log, settings: config });
}

/** As long as 16 random bytes in hexadecimal: nobody guesses it, however many requests they send. */
const KEY_LENGTH = 32;

export async function accessTo({ api_keys, oidc, host }: Config, database: Database, log: Log): Promise<Access> {
  const weak = api_keys.filter((key) => key.length < KEY_LENGTH).length;
  if (weak > 0)
    log.warn({ keys: weak }, `API_KEYS has keys of less than ${KEY_LENGTH} characters, which can be guessed`);
  const issuer = oidc && new (await import("../../access/oidc-issuer.ts")).OidcIssuer(oidc);
  return new Access({ database, log, api_keys, issuer, is_loopback: isLoopback(host) });
}

/** On an address that others can reach, nobody is let in without a key: there has to be one, or a way to know people. */
export async function refuseToBeOpen({ command, host, api_keys, oidc }: Config, database: Database): Promise<void> {
  if (isLoopback(host) || api_keys.length > 0 || oidc || (await hasApiKeys(database.read))) return;
  throw new ConfigError(
    `${command} would be open to everybody on ${host}: make a key with "threadmill keys create", set API_KEYS to one or more keys (comma-separated), or bind to 127.0.0.1 with --host.`,
  );
}
