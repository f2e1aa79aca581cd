import type { IncomingMessage } from "node:http";
import { ApiError } from "../../platform/errors.ts";
import type { BackgroundService } from "../../platform/lib/background-service.ts";
import type { Clock, Wait } from "../../platform/lib/clock.ts";
import { hasBody } from "./headers.ts";
import { type Call, createAgent, type Failure, relay } from "./relay.ts";
import type { Router, Upstream } from "./router.ts";
import { type Deployment, RouteReader, type RouteReaderOptions, Routes, type Target } from "./routes.ts";
import { tunnel, type UpgradeCall } from "./tunnel.ts";

export interface RouterOptions extends Omit<RouteReaderOptions, "routes"> {
  clock: Clock;
  wait: Wait;
  settings: {
    /** Maximum time that a request waits for a ready instance. */
    router_wait_ms: number;
  };
}

/** Idempotent methods (RFC 9110, 9.2.2). */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

export class DeploymentRouter implements Router, BackgroundService {
  readonly #options: RouterOptions;
  readonly #routes: Routes;
  readonly #reader: RouteReader;
  readonly #inFlight = new InFlightCounts();
  readonly #agent = createAgent();
  readonly #tunnels = new Set<UpgradeCall>();
  /** Requests whose response is not complete, including requests that wait for an instance. */
  readonly #calls = new Set<Promise<void>>();
  /** Whether only this process routes requests. With Postgres, other processes may also route requests. */
  readonly #isSingleProcess: boolean;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#routes = new Routes(options.wait);
    this.#reader = new RouteReader({ ...options, routes: this.#routes });
    this.#isSingleProcess = options.database.read.dialect.name === "sqlite";
  }

  start(): void {
    this.#reader.start();
  }

  /** Waits until all responses are complete, at most `grace_ms`. Ignores WebSockets, because they can stay open indefinitely. */
  async settle(grace_ms: number): Promise<void> {
    const over = new AbortController();
    const late = this.#options.wait(grace_ms, over.signal).then(() => over.abort());
    while (this.#calls.size > 0 && !over.signal.aborted) await Promise.race([Promise.allSettled(this.#calls), late]);
    over.abort();
  }

  /** Closes the connections to instances, and WebSockets, which the HTTP server does not close. */
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
    return this.#isSingleProcess ? this.#inFlight.of(instance_id) : Number.POSITIVE_INFINITY;
  }

  async find(slug: string): Promise<Deployment | undefined> {
    return this.#routes.find(slug) ?? (await this.#reader.find(slug));
  }

  /** Whether the routes of this process contain a ready instance of the deployment. */
  isReady({ deployment_id }: Deployment): boolean {
    return (this.#routes.get(deployment_id)?.targets.length ?? 0) > 0;
  }

  /** Whether instances of the deployment authenticate users. If none is ready, those that were ready before count. */
  authenticatesUsers = ({ deployment_id }: Deployment): boolean =>
    this.#routes.get(deployment_id)?.custom_auth ?? false;

  /**
   * Forwards a request to an instance. Resolves when the response ends or the client disconnects.
   *
   * @throws ApiError deployment_not_found, no_instance or instance_ended; unauthorized or missing_scope if the instance must not receive
   *   the request (see identification() in headers.ts); no part of the response was sent
   */
  async forward(deployment: Deployment, call: Call): Promise<void> {
    const isOpen = () => !call.response.destroyed;
    const attempt = (target: Target, isRetry: boolean) => relay(call, target, isRetry ? false : this.#agent);
    const answered = this.#try(deployment, call, { isOpen, attempt });
    this.#calls.add(answered);
    await answered.finally(() => this.#calls.delete(answered));
  }

  /**
   * Forwards a WebSocket upgrade to an instance. Resolves when the connection ends.
   *
   * @throws ApiError like {@link forward}
   */
  async forwardUpgrade(deployment: Deployment, call: UpgradeCall): Promise<void> {
    this.#tunnels.add(call);
    const isOpen = () => !call.socket.destroyed;
    const attempt = (target: Target) => tunnel(call, target);
    await this.#try(deployment, call, { isOpen, attempt }).finally(() => this.#tunnels.delete(call));
  }

  /**
   * Sends the request to an instance, or to another instance if the first accepts no connection. If the first instance may have received
   * the request, an idempotent request without a body is repeated once. If no instance is ready, the request waits.
   */
  async #try(
    { deployment_id, slug }: Deployment,
    { request }: Pick<Call, "request">,
    { isOpen, attempt }: { isOpen(): boolean; attempt(target: Target, isRetry: boolean): Promise<Failure | undefined> },
  ): Promise<void> {
    const { clock, settings } = this.#options;
    const deadline = clock.now() + settings.router_wait_ms;
    const refused = new Set<Target>();
    let sent: Failure | undefined;
    while (isOpen()) {
      const target = this.#acquire(deployment_id, slug, refused);
      const left_ms = deadline - clock.now();
      if (target) {
        const failure = await this.#counted(target, () => attempt(target, sent !== undefined));
        if (!failure) return;
        this.#logFailure(failure, target, slug);
        if (!failure.wasReused) refused.add(target);
        if (!failure.wasSent) continue;
        if (sent || !isRepeatable(request)) throw new ApiError("instance_ended", { slug }, failure.error);
        sent = failure;
      } else if (left_ms > 0) await this.#routes.change(deployment_id, left_ms);
      else throw new ApiError(sent ? "instance_ended" : "no_instance", { slug }, sent?.error);
    }
  }

  /** Also releases the target if `send` throws before it returns a promise, because the instance must not receive the request. */
  async #counted<T>(target: Target, send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } finally {
      this.#inFlight.release(target);
    }
  }

  #acquire(deployment_id: string, slug: string, refused: ReadonlySet<Target>): Target | undefined {
    const route = this.#routes.get(deployment_id);
    if (!route) throw new ApiError("deployment_not_found", { deployment_id: slug });
    return this.#inFlight.acquire(route.targets, refused);
  }

  #logFailure({ error, wasSent }: Failure, { instance_id }: Target, slug: string): void {
    this.#options.log.warn({ slug, instance_id, was_sent: wasSent, error: error.message }, "instance did not respond");
  }
}

const isRepeatable = (request: IncomingMessage): boolean => IDEMPOTENT.has(request.method ?? "") && !hasBody(request);

class InFlightCounts {
  readonly #counts = new Map<string, number>();
  #turn = 0;

  of(instance_id: string): number {
    return this.#counts.get(instance_id) ?? 0;
  }

  /**
   * Chooses the target with the fewest requests in flight, and rotates among equal targets. Counts the request immediately, so that
   * an instance to which a request is about to be sent is not considered idle.
   */
  acquire(targets: readonly Target[], refused: ReadonlySet<Target>): Target | undefined {
    let best: Target | undefined;
    const first = this.#turn++;
    for (let i = 0; i < targets.length; i++) {
      const target = targets[(first + i) % targets.length] as Target;
      if (refused.has(target)) continue;
      if (!best || this.of(target.instance_id) < this.of(best.instance_id)) best = target;
    }
    if (best) this.#counts.set(best.instance_id, this.of(best.instance_id) + 1);
    return best;
  }

  release({ instance_id }: Target): void {
    const left = this.of(instance_id) - 1;
    if (left > 0) this.#counts.set(instance_id, left);
    else this.#counts.delete(instance_id);
  }
}
