import type { Wait } from "../../platform/lib/clock.ts";
import type { Upstream } from "./router.ts";

/** Whom a slug belongs to. */
export interface Deployment {
  deployment_id: string;
  slug: string;
  tenant_id: string;
}

/** An instance as connections are made to it. */
export interface Target extends Upstream {
  hostname: string;
  port: string;
}

interface Route {
  targets: readonly Target[];
  /** When the reconciler of this process last said so; undefined: read from the rows. */
  told_at: number | undefined;
}

/** Which instances take the requests of which deployment, as this process knows. A change is the replacement of one entry. */
export class Routes {
  readonly #wait: Wait;
  readonly #by_id = new Map<string, Route>();
  readonly #by_slug = new Map<string, Deployment>();
  readonly #waiting = new Map<string, AbortController>();
  /** How often the reconciler of this process has said something: what was read meanwhile may be older. */
  told = 0;

  constructor(wait: Wait) {
    this.#wait = wait;
  }

  find(slug: string): Deployment | undefined {
    return this.#by_slug.get(slug);
  }

  get(deployment_id: string): Route | undefined {
    return this.#by_id.get(deployment_id);
  }

  /** All that are known. */
  get deployment_ids(): string[] {
    return [...this.#by_id.keys()];
  }

  name(deployment: Deployment): void {
    this.#by_slug.set(deployment.slug, deployment);
  }

  set(deployment_id: string, upstreams: readonly Upstream[], told_at?: number): void {
    if (told_at !== undefined) this.told += 1;
    this.#by_id.set(deployment_id, { targets: upstreams.flatMap(targetOf), told_at });
    this.#wake(deployment_id);
  }

  remove(deployment_id: string): void {
    this.told += 1;
    this.#by_id.delete(deployment_id);
    for (const [slug, deployment] of this.#by_slug)
      if (deployment.deployment_id === deployment_id) this.#by_slug.delete(slug);
    this.#wake(deployment_id);
  }

  /** Ends with the next change of a deployment's route, or after `ms`. */
  async change(deployment_id: string, ms: number): Promise<void> {
    const waiting = this.#waiting.get(deployment_id) ?? new AbortController();
    this.#waiting.set(deployment_id, waiting);
    await this.#wait(ms, waiting.signal);
  }

  #wake(deployment_id: string): void {
    this.#waiting.get(deployment_id)?.abort();
    this.#waiting.delete(deployment_id);
  }
}

/** None of an address that is no URL of http: nothing could be sent there. */
function targetOf(upstream: Upstream): Target[] {
  const url = URL.parse(upstream.address);
  if (url?.protocol !== "http:") return [];
  // Node's client takes an IPv6 address without its brackets.
  return [{ ...upstream, hostname: url.hostname.replaceAll(/[[\]]/g, ""), port: url.port || "80" }];
}
