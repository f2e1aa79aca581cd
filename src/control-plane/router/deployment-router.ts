import type { IncomingMessage } from "node:http";
import { ApiError } from "../../platform/errors.ts";
import type { Clock, Wait } from "../../platform/lib/clock.ts";
import type { Service } from "../../platform/lib/service.ts";
import { hasBody } from "./headers.ts";
import { InFlight } from "./in-flight.ts";
import { type Call, createAgent, type Failure, relay } from "./relay.ts";
import { RouteReader, type RouteReaderOptions } from "./route-reader.ts";
import type { Router, Upstream } from "./router.ts";
import { type Deployment, Routes, type Target } from "./routes.ts";
import { tunnel, type UpgradeCall } from "./tunnel.ts";

export interface RouterOptions extends Omit<RouteReaderOptions, "routes"> {
  clock: Clock;
  wait: Wait;
  settings: {
    /** How long a request waits for an instance when none is ready. */
    router_wait_ms: number;
  };
}

/** What may be asked twice (RFC 9110, 9.2.2). */
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

export class DeploymentRouter implements Router, Service {
  readonly #options: RouterOptions;
  readonly #routes: Routes;
  readonly #reader: RouteReader;
  readonly #inFlight = new InFlight();
  readonly #agent = createAgent();
  readonly #tunnels = new Set<UpgradeCall>();
  /** Requests that have not been answered to the end, also those that wait for an instance. */
  readonly #calls = new Set<Promise<void>>();
  /** On Postgres other processes route as well. */
  readonly #isAlone: boolean;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#routes = new Routes(options.wait);
    this.#reader = new RouteReader({ ...options, routes: this.#routes });
    this.#isAlone = options.database.read.dialect.name === "sqlite";
  }

  start(): void {
    this.#reader.start();
  }

  /**
   * Ends when all requests have been answered to the end, or after `grace_ms`. WebSockets are not waited for, as they have no end of
   * their own.
   */
  async settle(grace_ms: number): Promise<void> {
    const over = new AbortController();
    const late = this.#options.wait(grace_ms, over.signal).then(() => over.abort());
    while (this.#calls.size > 0 && !over.signal.aborted) await Promise.race([Promise.allSettled(this.#calls), late]);
    over.abort();
  }

  /** Drops the connections to instances that are left, and those of WebSockets, which no server closes by itself. */
  async stop(): Promise<void> {
    await this.#reader.stop();
    for (const { socket } of this.#tunnels) socket.destroy();
    this.#agent.destroy();
  }

  activate(deployment_id: string, upstreams: readonly Upstream[]): void {
    this.#routes.set(deployment_id, upstreams, this.#options.clock.now());
  }

  deactivate(deployment_id: string): void {
    this.#routes.remove(deployment_id);
  }

  inFlight(instance_id: string): number {
    return this.#isAlone ? this.#inFlight.of(instance_id) : Number.POSITIVE_INFINITY;
  }

  /** The deployment of a slug; undefined where there is none. */
  async find(slug: string): Promise<Deployment | undefined> {
    return this.#routes.find(slug) ?? (await this.#reader.find(slug));
  }

  /** Whether an instance takes requests of a deployment, as far as this process knows. */
  isReady({ deployment_id }: Deployment): boolean {
    return (this.#routes.get(deployment_id)?.targets.length ?? 0) > 0;
  }

  /**
   * Has an instance answer a request. Ends when it has, or when the client is gone.
   *
   * @throws ApiError no_instance or instance_gone; then nothing of the response has been sent
   */
  async carry(deployment: Deployment, call: Call): Promise<void> {
    const isOpen = () => !call.response.destroyed;
    const attempt = (target: Target, isAgain: boolean) => relay(call, target, isAgain ? false : this.#agent);
    const answered = this.#try(deployment, call, { isOpen, attempt });
    this.#calls.add(answered);
    await answered.finally(() => this.#calls.delete(answered));
  }

  /**
   * Has an instance take over a connection. Ends when that ends.
   *
   * @throws ApiError as {@link carry}
   */
  async carryUpgrade(deployment: Deployment, call: UpgradeCall): Promise<void> {
    this.#tunnels.add(call);
    const isOpen = () => !call.socket.destroyed;
    const attempt = (target: Target) => tunnel(call, target);
    await this.#try(deployment, call, { isOpen, attempt }).finally(() => this.#tunnels.delete(call));
  }

  /**
   * Asks one instance, and another when the first takes no connection. When it may have got the request, another is asked once,
   * if nothing can be done twice by that. While there is none to ask, a new one is waited for.
   */
  async #try(
    { deployment_id, slug }: Deployment,
    { request }: Pick<Call, "request">,
    { isOpen, attempt }: { isOpen(): boolean; attempt(target: Target, isAgain: boolean): Promise<Failure | undefined> },
  ): Promise<void> {
    const { clock, settings } = this.#options;
    const deadline = clock.now() + settings.router_wait_ms;
    const refused = new Set<Target>();
    let sent: Failure | undefined;
    while (isOpen()) {
      const target = this.#take(deployment_id, slug, refused);
      const left_ms = deadline - clock.now();
      if (target) {
        const failure = await attempt(target, sent !== undefined).finally(() => this.#inFlight.leave(target));
        if (!failure) return;
        this.#note(failure, target, slug);
        if (!failure.wasReused) refused.add(target);
        if (!failure.wasSent) continue;
        if (sent || !isRepeatable(request)) throw new ApiError("instance_gone", { slug }, failure.error);
        sent = failure;
      } else if (left_ms > 0) await this.#routes.change(deployment_id, left_ms);
      else throw new ApiError(sent ? "instance_gone" : "no_instance", { slug }, sent?.error);
    }
  }

  #take(deployment_id: string, slug: string, refused: ReadonlySet<Target>): Target | undefined {
    const route = this.#routes.get(deployment_id);
    if (!route) throw new ApiError("deployment_not_found", { deployment_id: slug });
    return this.#inFlight.take(route.targets, refused);
  }

  #note({ error, wasSent }: Failure, { instance_id }: Target, slug: string): void {
    this.#options.log.warn({ slug, instance_id, wasSent, error: error.message }, "an instance did not answer");
  }
}

const isRepeatable = (request: IncomingMessage): boolean => REPEATABLE.has(request.method ?? "") && !hasBody(request);
