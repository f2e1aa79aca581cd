import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { credentialsOf } from "../access/http/auth.ts";
import { isUiFile, scopeOf } from "../access/http/scopes.ts";
import type { Access, Admission, Credentials } from "../access/index.ts";
import {
  type AddressOptions,
  addressOf,
  type DeploymentAddress,
  hostOf,
  isNormalizedPath,
  isSlug,
} from "../control-plane/http/deployment-address.ts";
import type { Client, Deployment, DeploymentRouter, Origin } from "../control-plane/index.ts";
import { type Caller, mayUse } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import type { Log } from "../platform/lib/log.ts";
import { describeError } from "./error-response.ts";
import { isKnownHost, isPageWithoutJson } from "./guards.ts";
import type { OriginPolicy } from "./origins.ts";

export interface FrontOptions extends AddressOptions {
  router: Pick<DeploymentRouter, "find" | "isReady" | "authenticatesUsers" | "forward" | "forwardUpgrade">;
  access: Pick<Access, "admit" | "admitIfValid" | "isOpen">;
  origins: Pick<OriginPolicy, "allowedOrigin">;
  /** Accepted host names besides loopback names; undefined if the server does not listen on loopback. */
  allowed_hosts: readonly string[] | undefined;
  public_url: string | undefined;
  log: Log;
}

/** Authenticates requests for deployments and forwards them. It uses Node's request and response objects to stream bodies unchanged. */
export class DeploymentFront {
  readonly #options: FrontOptions;
  readonly #proto: string;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#proto = options.public_url?.startsWith("https:") ? "https" : "http";
  }

  /** Handles requests for deployments and calls `next` for all others. */
  handle(request: IncomingMessage, response: ServerResponse, next: () => void): void {
    const address = this.#addressOf(request);
    if (address) void this.#answer(address, request, response, next);
    else next();
  }

  /** Whether a request opens a WebSocket of a deployment. */
  mayUpgrade(request: IncomingMessage): boolean {
    return isWebSocket(request) && this.#addressOf(request) !== undefined;
  }

  upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): void {
    const socket = connection as Socket;
    // Node removes its own error listener before it emits `upgrade`; without a listener, a socket error would end the process.
    socket.on("error", () => undefined);
    void this.#connect(request, socket, head).catch((error) => {
      if (!socket.destroyed) this.#rejectUpgrade(error, request, socket);
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
    let allowed_origin: string | undefined;
    try {
      if (address.by === "localhost" && !(await this.#find(address))) return next();
      allowed_origin = await this.#allowedOrigin(address, request);
      if (isPreflight(request)) return this.#answerPreflight(request, response, allowed_origin);
      const { deployment, origin, onAccessEnd } = await this.#admit(address, request, allowed_origin);
      if (isProbe(address, request)) return this.#answerReadiness(deployment, response, allowed_origin);
      const { path } = address;
      // Closes the connection without an error event, because the stream may be in the middle of an event.
      const unwatch = onAccessEnd(() => response.destroy());
      await this.#options.router.forward(deployment, { request, response, path, origin }).finally(unwatch);
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { status, detail, headers } = this.#errorResponse(error, request, allowed_origin);
      response.writeHead(status, headers).end(detail);
    }
  }

  /**
   * Browsers send no API key in a preflight, so the response must not reveal which slugs exist: it is the same for all. Exception: for an
   * unknown `{slug}.localhost`, the service itself responds.
   */
  #answerPreflight({ headers }: IncomingMessage, response: ServerResponse, allowed_origin: string | undefined): void {
    response.writeHead(204, {
      ...corsHeaders(allowed_origin),
      "access-control-allow-methods": "GET,HEAD,PUT,POST,DELETE,PATCH",
      "access-control-allow-headers": headers["access-control-request-headers"] ?? "",
    });
    response.end();
  }

  /** Responds to /ok with the readiness that the reconciler has recorded. The instance's own response at /ok can be anything. */
  #answerReadiness(deployment: Deployment, response: ServerResponse, allowed_origin: string | undefined): void {
    const ok = this.#options.router.isReady(deployment);
    response.writeHead(ok ? 200 : 503, { ...corsHeaders(allowed_origin), "content-type": "application/json" });
    response.end(JSON.stringify({ ok }));
  }

  async #connect(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const address = this.#addressOf(request);
    if (!address || !isWebSocket(request)) throw new ApiError("method_not_allowed");
    // Browsers open WebSockets to any origin without a preflight, so the origin is checked here.
    const { path } = address;
    const admitted = await this.#admit(address, request, await this.#allowedOrigin(address, request));
    const { deployment, origin, onAccessEnd } = admitted;
    const unwatch = onAccessEnd(() => socket.destroy());
    await this.#options.router.forwardUpgrade(deployment, { request, socket, head, path, origin }).finally(unwatch);
  }

  /** @throws ApiError if the host, the caller or the request is rejected (checked in this order), or if the deployment does not exist */
  async #admit(address: DeploymentAddress, request: IncomingMessage, allowed_origin: string | undefined) {
    this.#checkHost(address, request);
    const deployment = await this.#find(address);
    const isPublic = isUiFile(request.method ?? "", withoutQuery(address.path));
    const { caller, onEnd, sender } = isPublic ? PUBLIC : await this.#senderOf(request, deployment);
    if (!isNormalizedPath(address.path))
      throw new ApiError("invalid_request", { reason: 'The path must not contain the segments "." or "..".' });
    const coding = request.headers["transfer-encoding"]?.toLowerCase() ?? "chunked";
    if (coding !== "chunked") throw new ApiError("invalid_request", { reason: "Transfer-Encoding must be chunked." });
    // Some servers respond to TRACE with all request headers, including credentials.
    if (request.method === "TRACE") throw new ApiError("method_not_allowed");
    // A service worker would stay in the browser and intercept pages of other deployments and of the web app.
    if (address.by === "path" && request.headers["service-worker"] !== undefined)
      throw new ApiError("forbidden_worker", { slug: address.slug });
    if (!deployment || (caller && caller.tenant_id !== deployment.tenant_id))
      throw new ApiError("deployment_not_found", { deployment_id: address.slug });
    const origin: Origin = {
      client: request.socket.remoteAddress ?? "",
      proto: this.#proto,
      host: request.headers.host ?? "",
      prefix: address.prefix,
      sender,
      corsAllowed: allowed_origin !== undefined,
    };
    return { deployment, origin, onAccessEnd: onEnd };
  }

  #checkHost({ by }: DeploymentAddress, { headers }: IncomingMessage): void {
    const host = hostOf(headers.host);
    const { allowed_hosts } = this.#options;
    if (by === "path" && allowed_hosts && !isKnownHost(host, allowed_hosts))
      throw new ApiError("forbidden_host", { host });
  }

  /** @throws ApiError like {@link Access.admit}; a sender without credentials is admitted if the instances authenticate users */
  async #senderOf({ method = "", headers }: IncomingMessage, deployment: Deployment | undefined): Promise<Sent> {
    const header = (name: string) => headers[name]?.toString();
    const { access, router } = this.#options;
    const credentials = credentialsOf(header);
    const isCustom = deployment !== undefined && router.authenticatesUsers(deployment);
    const admission = isCustom ? await this.#admitIfKnown(credentials) : await access.admit(credentials);
    const scope = scopeOf("/deployments", method);
    if (admission && scope && !mayUse(admission.caller, scope)) throw new ApiError("missing_scope", { scope });
    if (isPageWithoutJson(method, header)) throw new ApiError("unsupported_media_type");
    if (!admission) return UNKNOWN;
    const { caller, onEnd } = admission;
    const { user_id } = caller;
    // Without keys, this service admits everyone, but the instances need not.
    const isUnknown = await access.isOpen();
    const is_admin = mayUse(caller, "admin");
    return { caller, onEnd, sender: isUnknown ? { kind: "unknown", user_id } : { kind: "known", user_id, is_admin } };
  }

  /**
   * Checks X-Api-Key and Authorization separately: the credentials of unknown senders are forwarded to the instance, so a sender is known
   * if only one of them is a credential of this service.
   */
  async #admitIfKnown({ api_key, bearer, tenant_id }: Credentials): Promise<Admission | undefined> {
    // A JWT that is valid for this service is never forwarded, also if it does not determine a workspace.
    const admit = (credentials: Credentials) =>
      this.#options.access.admitIfValid(credentials, { refuses_members: true });
    const first = await admit({ api_key, bearer, tenant_id });
    return first ?? (api_key && bearer ? admit({ api_key: undefined, bearer, tenant_id }) : undefined);
  }

  async #find({ slug }: DeploymentAddress): Promise<Deployment | undefined> {
    return isSlug(slug) ? this.#options.router.find(slug) : undefined;
  }

  #allowedOrigin({ slug, path }: DeploymentAddress, { method = "", headers }: IncomingMessage) {
    const header = (name: string) => headers[name]?.toString();
    return this.#options.origins.allowedOrigin({ method, path: `/deployments/${slug}${withoutQuery(path)}`, header });
  }

  #errorResponse(error: unknown, { method = "", url = "" }: IncomingMessage, allowed_origin?: string) {
    const { status, detail, headers } = describeError(error, { method, path: withoutQuery(url) }, this.#options.log);
    const text = JSON.stringify({ detail });
    headers["content-type"] = "application/json";
    headers["content-length"] = String(Buffer.byteLength(text));
    return { status, detail: text, headers: { ...headers, ...corsHeaders(allowed_origin) } };
  }

  #rejectUpgrade(error: unknown, request: IncomingMessage, socket: Socket): void {
    const { status, detail, headers } = this.#errorResponse(error, request);
    const lines = Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("\r\n")}\r\n\r\n${detail}`);
    socket.destroySoon();
  }
}

interface Sent extends Pick<Admission, "onEnd"> {
  /** Undefined if this service has not authenticated the sender. */
  caller: Caller | undefined;
  sender: Client;
}

const NO_ADMISSION = { caller: undefined, onEnd: () => () => undefined };
const UNKNOWN: Sent = { ...NO_ADMISSION, sender: { kind: "unknown", user_id: undefined } };
const PUBLIC: Sent = { ...NO_ADMISSION, sender: { kind: "public" } };

const withoutQuery = (url: string): string => url.split("?", 1)[0] as string;

const corsHeaders = (allowed_origin: string | undefined): Record<string, string> => ({
  ...(allowed_origin !== undefined && { "access-control-allow-origin": allowed_origin }),
  ...(allowed_origin !== "*" && { vary: "Origin" }),
});

const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === "OPTIONS" && headers["access-control-request-method"] !== undefined;

const isProbe = ({ path }: DeploymentAddress, { method = "" }: IncomingMessage): boolean =>
  ["GET", "HEAD"].includes(method) && withoutQuery(path) === "/ok";

const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
