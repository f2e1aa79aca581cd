import type { Caller } from "../../platform/contract/caller.ts";
import { repeating, type Service } from "../../platform/lib/service.ts";
import type { VaultContext } from "../context.ts";
import type { AuthenticateAnswer, AuthenticateRequest, McpDiscoverRequest, WaitAnswer } from "../contract/flows.ts";
import type { OAuthProvider } from "../contract/records.ts";
import { deleteFlowsExpiredFor } from "../storage/flows.ts";
import { authenticate } from "./authenticate.ts";
import { type FlowEnd, type Returned, returnFromProvider } from "./flow-return.ts";
import { waitForFlow } from "./flow-wait.ts";
import { discoverProvider } from "./mcp-discover.ts";

/** Nobody waits longer, whatever they ask for: the clients' own default is 300 s. */
const LONGEST_WAIT_MS = 600_000;

/** How long flows are kept once their time is over, and how often the old ones are looked for. */
const KEPT_MS = 24 * 3_600_000;
const EVERY_MS = 60_000;
/** Flows that go in one transaction, so that no other write waits for long. */
const BATCH = 500;

/** The ways of users to providers and back, and the tokens that come of them. */
export class Flows implements Service {
  readonly #context: VaultContext;
  readonly #sweeping: Service;
  readonly #stopping = new AbortController();

  constructor(context: VaultContext) {
    this.#context = context;
    const { database, log } = context;
    const sweep = async () => {
      while ((await database.write((tx) => deleteFlowsExpiredFor(tx, KEPT_MS, BATCH))) === BATCH);
    };
    this.#sweeping = repeating(EVERY_MS, sweep, (error) => log.error({ error }, "deleting old flows failed"));
  }

  /** As {@link authenticate}. */
  authenticate(caller: Caller, body: AuthenticateRequest, base_url: string | undefined): Promise<AuthenticateAnswer> {
    return authenticate(this.#context, caller, body, base_url);
  }

  /**
   * As {@link waitForFlow}; also ends when the service stops.
   *
   * @param signal aborted when the caller is gone
   */
  wait(caller: Caller, auth_id: string, timeout_s: number, signal: AbortSignal): Promise<WaitAnswer> {
    const at_most_ms = Math.min(Math.max(timeout_s, 0) * 1000, LONGEST_WAIT_MS);
    const either = AbortSignal.any([signal, this.#stopping.signal]);
    return waitForFlow(this.#context, caller, auth_id, { at_most_ms, signal: either });
  }

  /** As {@link returnFromProvider}. */
  return(returned: Returned, caller?: Caller): Promise<FlowEnd> {
    return returnFromProvider(this.#context, returned, caller);
  }

  /** As {@link discoverProvider}. */
  discover(caller: Caller, body: McpDiscoverRequest, base_url: string | undefined): Promise<OAuthProvider> {
    return discoverProvider(this.#context, caller, body, base_url);
  }

  start(): void {
    this.#sweeping.start();
  }

  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#sweeping.stop();
  }
}
