import { once } from "node:events";
import type { Database } from "../platform/database/database.ts";
import type { Clock } from "../platform/lib/clock.ts";
import type { Log } from "../platform/lib/log.ts";
import type { FetchRules, SafeFetch } from "../platform/lib/safe-fetch/safe-fetch.ts";
import type { Seal } from "./encryption/seal.ts";

export interface VaultContext {
  database: Database;
  seal: Seal;
  fetch: SafeFetch;
  fetch_rules: FetchRules;
  clock: Clock;
  log: Log;
  settings: VaultSettings;
  ongoing: OngoingRequests;
}

/** Requests to providers whose results must be stored: with a rotated refresh token that is not stored, the grant is lost. */
export class OngoingRequests {
  readonly #requests = new Set<Promise<unknown>>();

  add<T>(request: Promise<T>): Promise<T> {
    this.#requests.add(request);
    const remove = () => this.#requests.delete(request);
    request.then(remove, remove);
    return request;
  }

  /** Resolves when there are none, or after `limit_ms`: the revocations of all tokens of a provider can take minutes. */
  async ended(limit_ms: number): Promise<void> {
    const limit = AbortSignal.timeout(limit_ms);
    const isOver = once(limit, "abort");
    while (this.#requests.size > 0 && !limit.aborted) await Promise.race([Promise.allSettled(this.#requests), isOver]);
  }
}

export interface VaultSettings {
  flow_ttl_ms: number;
  /** A token that expires within this time is refreshed before it is returned. */
  refresh_skew_ms: number;
  provider_timeout_ms: number;
  /** Initial poll interval while a request waits for a flow or a refresh. Polling is needed because notifications can be lost. */
  poll_ms: number;
  token_event_retention_ms: number;
}
