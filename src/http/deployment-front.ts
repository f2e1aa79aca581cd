import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { mayUse } from "../contract/caller.ts";
import type { DeploymentRouter } from "../control/router/deployment-router.ts";
import type { Origin } from "../control/router/headers.ts";
import type { Deployment } from "../control/router/routes.ts";
import { ApiError } from "../errors.ts";
import type { Log } from "../lib/log.ts";
import type { Access } from "../vault/access.ts";
import { credentialsOf } from "./auth.ts";
import {
  type AddressOptions,
  addressOf,
  type DeploymentAddress,
  hostOf,
  isPlain,
  isSlug,
} from "./deployment-address.ts";
import { refusalOf } from "./error-response.ts";
import { isKnownHost, isPageWithoutJson } from "./guards.ts";
import { isOpen, scopeOf } from "./scopes.ts";

export interface FrontOptions extends AddressOptions {
  router: Pick<DeploymentRouter, "find" | "carry" | "carryUpgrade">;
  access: Pick<Access, "callerOf">;
  cors_origins: readonly string[];
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
    try {
      if (address.by === "localhost" && !(await this.#find(address))) return next();
      const { deployment, origin } = await this.#admit(address, request);
      await this.#options.router.carry(deployment, { request, response, path: address.path, origin });
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { status, detail, headers } = this.#refusal(error, request);
      response.writeHead(status, headers).end(detail);
    }
  }

  async #join(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const address = this.#addressOf(request);
    if (!address || !isWebSocket(request)) throw new ApiError("method_not_allowed");
    const { origin } = request.headers;
    const { deployment, origin: from } = await this.#admit(address, request);
    // A page may open a WebSocket to any server without asking.
    if (!from.mayBeRead) throw new ApiError("forbidden_origin", { origin });
    const call = { request, socket, head, path: address.path, origin: from };
    await this.#options.router.carryUpgrade(deployment, call);
  }

  /** @throws ApiError first what is wrong with the caller, then with what they ask for */
  async #admit(address: DeploymentAddress, request: IncomingMessage): Promise<Admitted> {
    this.#checkHost(address, request);
    const caller = this.#isOpen(address, request) ? undefined : await this.#callerOf(request);
    if (!isPlain(address.path)) throw new ApiError("invalid_request", { reason: "The path has . or .. in it." });
    const coding = request.headers["transfer-encoding"]?.toLowerCase() ?? "chunked";
    if (coding !== "chunked") throw new ApiError("invalid_request", { reason: "Transfer-Encoding must be chunked." });
    // Some servers answer it with all headers that they got.
    if (request.method === "TRACE") throw new ApiError("method_not_allowed");
    const deployment = await this.#find(address);
    if (!deployment || (caller && caller.tenant_id !== deployment.tenant_id))
      throw new ApiError("deployment_not_found", { deployment_id: address.slug });
    return { deployment, origin: this.#originOf(address, request, caller?.user_id) };
  }

  #checkHost({ by }: DeploymentAddress, { headers }: IncomingMessage): void {
    const host = hostOf(headers.host);
    const { allowed_hosts } = this.#options;
    if (by === "path" && allowed_hosts && !isKnownHost(host, allowed_hosts))
      throw new ApiError("forbidden_host", { host });
  }

  /** Browsers ask with OPTIONS, and without a key, what a page may send. */
  #isOpen({ path }: DeploymentAddress, { method = "" }: IncomingMessage): boolean {
    return method === "OPTIONS" || isOpen(method, `/deployments/any${path.split("?", 1)[0]}`);
  }

  async #callerOf({ method = "", headers }: IncomingMessage) {
    const header = (name: string) => headers[name]?.toString();
    const credentials = credentialsOf(header);
    const caller = await this.#options.access.callerOf(credentials);
    const scope = scopeOf("/deployments");
    if (scope && !mayUse(caller, scope)) throw new ApiError("missing_scope", { scope });
    // A page that shows a key is one that somebody has given it to.
    if (!credentials.api_key && !credentials.bearer && isPageWithoutJson(method, header))
      throw new ApiError("unsupported_media_type");
    return caller;
  }

  async #find({ slug }: DeploymentAddress): Promise<Deployment | undefined> {
    return isSlug(slug) ? this.#options.router.find(slug) : undefined;
  }

  #originOf({ prefix }: DeploymentAddress, { socket, headers }: IncomingMessage, user_id: string | undefined): Origin {
    return {
      client: socket.remoteAddress ?? "",
      proto: this.#proto,
      host: headers.host ?? "",
      prefix,
      user_id,
      mayBeRead: this.#readerOf(headers.origin) !== undefined,
    };
  }

  /** Whom an answer to a page names as its reader: everybody, or the page's origin; undefined when it may not be read. */
  #readerOf(origin: string | undefined): string | undefined {
    const { cors_origins } = this.#options;
    if (cors_origins.includes("*")) return "*";
    return origin === undefined || cors_origins.includes(origin) ? (origin ?? "") : undefined;
  }

  /** An answer of the router itself; pages may read it as they may read others. */
  #refusal(error: unknown, { method = "", url = "", headers: { origin } }: IncomingMessage) {
    const path = url.split("?", 1)[0] as string;
    const { status, detail, headers } = refusalOf(error, { method, path }, this.#options.log);
    const text = JSON.stringify({ detail });
    headers["content-type"] = "application/json";
    headers["content-length"] = String(Buffer.byteLength(text));
    const reader = this.#readerOf(origin);
    if (reader) headers["access-control-allow-origin"] = reader;
    if (reader !== "*") headers.vary = "Origin";
    return { status, detail: text, headers };
  }

  #refuseUpgrade(error: unknown, request: IncomingMessage, socket: Socket): void {
    const { status, detail, headers } = this.#refusal(error, request);
    const lines = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("\r\n")}\r\n\r\n${detail}`);
    socket.destroySoon();
  }
}

const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
