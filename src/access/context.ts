import type { Database } from "../platform/database/database.ts";
import type { Clock } from "../platform/lib/clock.ts";
import type { Log } from "../platform/lib/log.ts";
import type { FetchRules, SafeFetch } from "../platform/lib/safe-fetch.ts";
import type { Seal } from "./encryption/seal.ts";

/** What the rules of the vault work with. */
export interface VaultContext {
  database: Database;
  seal: Seal;
  fetch: SafeFetch;
  fetch_rules: FetchRules;
  clock: Clock;
  log: Log;
  settings: VaultSettings;
}

/** All in milliseconds. */
export interface VaultSettings {
  /** How long a user may take at the provider. */
  flow_ttl_ms: number;
  /** A token that expires within this is refreshed before it is given out. */
  refresh_skew_ms: number;
  /** Asking a provider for something: a token, a revocation. */
  provider_timeout_ms: number;
  /** Whoever waits for a flow or a token looks for himself this often, in case a hint was lost. */
  poll_ms: number;
  /** Token events are kept for this long. */
  token_event_retention_ms: number;
}
