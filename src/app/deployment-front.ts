import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { credentialsOf } from "../access/http/auth.ts";
import { scopeOf } from "../access/http/scopes.ts";
import type { Access, Admission } from "../access/index.ts";
import {
  type AddressOptions,
  addressOf,
  type DeploymentAddress,
  hostOf,
  isPlain,
  isSlug,
} from "../control-plane/http/deployment-address.ts";
import type { Deployment, DeploymentRouter, Origin } from "../control-plane/index.ts";
import { mayUse } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import type { Log } from "../platform/lib/log.ts";
import { refusalOf } from "./error-response.ts";
import { isKnownHost, isPageWithoutJson } from "./guards.ts";
import type { OriginPolicy } from "./origins.ts";

export interface FrontOptions extends AddressOptions {
  router: Pick<DeploymentRouter, "find" | "isReady" | "carry" | "carryUpgrade">;
  access: Pick<Access, "admit">;
  origins: Pick<OriginPolicy, "readerOf">;
  /** Set on a loopback address: the names, besides loopback's own, that it is called by. */
  allowed_hosts: readonly string[] | undefined;
  /** Our own address as others reach it, where that is known. */
  public_url: string | undefined;
  log: Log;
}

/** A request that may go to a deployment. */
interface Admitted {
  deployment: Deployment;
  origin: Origin;
  onAccessEnd: Admission["onEnd"];
}

/**
 * The front door of deployments. It stands before all other routes and has Node's requests as they came, so that bodies and
 * answers pass without being looked at. What they are asked of callers is what the agent server asks.
 */
export class DeploymentFront {
  readonly #options: FrontOptions;
  readonly #proto: string;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#proto = options.public_url?.startsWith("https:") ? "https" : "http";
  }

  /** Answers a request for a deployment; `next` is called for one that is for the service itself. */
  handle(request: IncomingMessage, response: ServerResponse, next: () => void): void {
    const address = this.#addressOf(request);
    if (address) void this.#answer(address, request, response, next);
    else next();
  }

  /** Whether a request wants to become a WebSocket of a deployment. */
  mayUpgrade(request: IncomingMessage): boolean {
    return isWebSocket(request) && this.#addressOf(request) !== undefined;
  }

  /** Gives the connection of such a request to an instance. */
  upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): void {
    const socket = connection as Socket;
    // From here on nobody else listens.
    socket.on("error", () => undefined);
    void this.#join(request, socket, head).catch((error) => {
      if (!socket.destroyed) this.#refuseUpgrade(error, request, socket);
    });
  }

  #addressOf({ url = "", headers: { host } }: IncomingMessage): DeploymentAddress | undefined {
    return addressOf({ url, host }, this.#options);
  }

  async #answer(
    address: DeploymentAddress,
    request: IncomingMessage,
    response: ServerResponse,
    next: () => void,
  ): Promise<void> {
    let reader: string | undefined;
    try {
      if (address.by === "localhost" && !(await this.#find(address))) return next();
      reader = await this.#readerOf(address, request);
      if (isPreflight(request)) return this.#permit(request, response, reader);
      const { deployment, origin, onAccessEnd } = await this.#admit(address, request, reader);
      if (isProbe(address, request)) return this.#tellWhetherReady(deployment, response, reader);
      const { path } = address;
      // What an instance has said so far may end in the middle of an event, so that nothing could be added to it.
      const unwatch = onAccessEnd(() => response.destroy());
      await this.#options.router.carry(deployment, { request, response, path, origin }).finally(unwatch);
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { status, detail, headers } = this.#refusal(error, request, reader);
      response.writeHead(status, headers).end(detail);
    }
  }

  /**
   * A browser asks, without a key, what a page may send. The answer is the same for every deployment and for none, so that nobody
   * learns which there are; what the instance does not allow its pages, it says with its own answers.
   */
  #permit({ headers }: IncomingMessage, response: ServerResponse, reader: string | undefined): void {
    response.writeHead(204, {
      ...corsHeaders(reader),
      "access-control-allow-methods": "GET,HEAD,PUT,POST,DELETE,PATCH",
      "access-control-allow-headers": headers["access-control-request-headers"] ?? "",
    });
    response.end();
  }

  /** From what the reconciler has found out: an instance could answer with a page. */
  #tellWhetherReady(deployment: Deployment, response: ServerResponse, reader: string | undefined): void {
    const ok = this.#options.router.isReady(deployment);
    response.writeHead(ok ? 200 : 503, { ...corsHeaders(reader), "content-type": "application/json" });
    response.end(JSON.stringify({ ok }));
  }

  async #join(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const address = this.#addressOf(request);
    if (!address || !isWebSocket(request)) throw new ApiError("method_not_allowed");
    // A page may open a WebSocket to any server without asking.
    const { path } = address;
    const admitted = await this.#admit(address, request, await this.#readerOf(address, request));
    const { deployment, origin, onAccessEnd } = admitted;
    const unwatch = onAccessEnd(() => socket.destroy());
    await this.#options.router.carryUpgrade(deployment, { request, socket, head, path, origin }).finally(unwatch);
  }

  /** @throws ApiError first what is wrong with the caller, then with what they ask for */
  async #admit(address: DeploymentAddress, request: IncomingMessage, reader: string | undefined): Promise<Admitted> {
    this.#checkHost(address, request);
    const { caller, onEnd } = await this.#callerOf(request);
    if (!isPlain(address.path)) throw new ApiError("invalid_request", { reason: "The path has . or .. in it." });
    const coding = request.headers["transfer-encoding"]?.toLowerCase() ?? "chunked";
    if (coding !== "chunked") throw new ApiError("invalid_request", { reason: "Transfer-Encoding must be chunked." });
    // Some servers answer it with all headers that they got.
    if (request.method === "TRACE") throw new ApiError("method_not_allowed");
    // It would stay in the browser, in front of pages of other deployments and of the web app.
    if (address.by === "path" && request.headers["service-worker"] !== undefined)
      throw new ApiError("forbidden_worker");
    const deployment = await this.#find(address);
    if (!deployment || caller.tenant_id !== deployment.tenant_id)
      throw new ApiError("deployment_not_found", { deployment_id: address.slug });
    return { deployment, origin: this.#originOf(address, request, caller.user_id, reader), onAccessEnd: onEnd };
  }

  #checkHost({ by }: DeploymentAddress, { headers }: IncomingMessage): void {
    const host = hostOf(headers.host);
    const { allowed_hosts } = this.#options;
    if (by === "path" && allowed_hosts && !isKnownHost(host, allowed_hosts))
      throw new ApiError("forbidden_host", { host });
  }

  async #callerOf({ method = "", headers }: IncomingMessage): Promise<Admission> {
    const header = (name: string) => headers[name]?.toString();
    const admission = await this.#options.access.admit(credentialsOf(header));
    const scope = scopeOf("/deployments", method);
    if (scope && !mayUse(admission.caller, scope)) throw new ApiError("missing_scope", { scope });
    if (isPageWithoutJson(method, header)) throw new ApiError("unsupported_media_type");
    return admission;
  }

  async #find({ slug }: DeploymentAddress): Promise<Deployment | undefined> {
    return isSlug(slug) ? this.#options.router.find(slug) : undefined;
  }

  #originOf(
    { prefix }: DeploymentAddress,
    { socket, headers }: IncomingMessage,
    user_id: string,
    reader: string | undefined,
  ): Origin {
    return {
      client: socket.remoteAddress ?? "",
      proto: this.#proto,
      host: headers.host ?? "",
      prefix,
      user_id,
      mayBeRead: reader !== undefined,
    };
  }

  /** Whom an answer to a page names as its reader; see OriginPolicy. */
  #readerOf({ slug, path }: DeploymentAddress, { method = "", headers }: IncomingMessage): Promise<string | undefined> {
    return this.#options.origins.readerOf({
      method,
      path: `/deployments/${slug}${path.split("?", 1)[0]}`,
      header: (name) => headers[name]?.toString(),
    });
  }

  /** An answer of the router itself; pages may read it as they may read others. */
  #refusal(error: unknown, { method = "", url = "" }: IncomingMessage, reader?: string) {
    const path = url.split("?", 1)[0] as string;
    const { status, detail, headers } = refusalOf(error, { method, path }, this.#options.log);
    const text = JSON.stringify({ detail });
    headers["content-type"] = "application/json";
    headers["content-length"] = String(Buffer.byteLength(text));
    return { status, detail: text, headers: { ...headers, ...corsHeaders(reader) } };
  }

  #refuseUpgrade(error: unknown, request: IncomingMessage, socket: Socket): void {
    const { status, detail, headers } = this.#refusal(error, request);
    const lines = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("\r\n")}\r\n\r\n${detail}`);
    socket.destroySoon();
  }
}

const corsHeaders = (reader: string | undefined): Record<string, string> => ({
  ...(reader !== undefined && { "access-control-allow-origin": reader }),
  ...(reader !== "*" && { vary: "Origin" }),
});

const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === "OPTIONS" && headers["access-control-request-method"] !== undefined;

const isProbe = ({ path }: DeploymentAddress, { method = "" }: IncomingMessage): boolean =>
  ["GET", "HEAD"].includes(method) && path.split("?", 1)[0] === "/ok";

const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
