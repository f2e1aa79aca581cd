import type { Context, MiddlewareHandler } from "hono";
import { type Caller, mayUse, type Scope } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { pathBelow } from "../../platform/http/base-url.ts";
import type { Authorize, Env, OnAccessEnd } from "../../platform/http/route.ts";
import { type Access, type Admission, type Credentials, permanentAdmission } from "../access.ts";
import { isPublic, scopeOf } from "./scopes.ts";
import { UploadLimit, type UploadLimits } from "./upload-limit.ts";

/** Authenticates and authorizes users of the agent server with the project's authentication handlers. */
export interface CustomAuthentication {
  authenticate(request: Request): Promise<Caller>;
  authorize: Authorize;
}

export interface AuthenticationOptions {
  access: Access;
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
  max_open: OpenLimits;
  max_upload: UploadLimits;
  /** Undefined if the project has no authentication handler. */
  custom: CustomAuthentication | undefined;
}

/** Authenticates requests, before routing and validation: an unauthorized client cannot discover routes or body formats. */
export class Authentication {
  readonly #options: AuthenticationOptions;
  readonly #answers: OpenResponseLimit;
  readonly #uploads: UploadLimit;

  constructor(options: AuthenticationOptions) {
    this.#options = options;
    this.#answers = new OpenResponseLimit(options.max_open);
    this.#uploads = new UploadLimit(options.max_upload);
  }

  /** For routes of the service. Requests to public paths have no caller. */
  readonly ofService: MiddlewareHandler<Env> = async (context, next) => {
    const path = pathBelow(this.#options.prefix, context.req.path);
    if (path !== undefined && isPublic(context.req.method, path)) return next();
    const scope = path === undefined ? undefined : scopeOf(path, context.req.method);
    await this.#admit(context, scope);
    await next();
    // Responses that may contain secrets must not be cached.
    if (scope && SECRET_SCOPES.has(scope)) context.header("cache-control", "no-store");
  };

  /** For routes of the project's HTTP app. The scopes and public paths of the service do not apply to their paths. */
  readonly ofApp: MiddlewareHandler<Env> = async (context, next) => {
    await this.#admit(context, undefined);
    await next();
  };

  /** Returns the caller on whose behalf the project's HTTP app may send a request with these headers to the agent server. */
  async callerOfApp(request: Request): Promise<Caller> {
    const { access, custom } = this.#options;
    const credentials = credentialsOf((name) => request.headers.get(name) ?? undefined);
    const { caller } = custom
      ? await admitToAgents(access, credentials, custom, { request, scope: "agents" })
      : await access.admit(credentials);
    return caller;
  }

  /** Whether the caller of a request to the HTTP app can also be the caller of the app's own requests to the agent server. */
  mayUseAgents = (caller: Caller): boolean =>
    !this.#options.custom || caller.user !== undefined || mayUse(caller, "admin");

  async #admit(context: Context<Env>, scope: Scope | null | undefined): Promise<void> {
    const { access, custom } = this.#options;
    const answers = this.#answers;
    const internal = context.env?.caller;
    const credentials = credentialsOf((name) => context.req.header(name));
    const { caller, onEnd, isLimited } = internal
      ? permanentAdmission(internal)
      : custom && (scope ?? "agents") === "agents"
        ? await admitToAgents(access, credentials, custom, { request: context.req.raw, scope })
        : await access.admit(credentials);
    if (scope && !mayUse(caller, scope)) throw new ApiError("missing_scope", { scope });
    if (caller.user) {
      // Requests from a graph carry the run's user, even after auth.path was removed from langgraph.json.
      if (!custom)
        throw new ApiError("auth_failed", {}, new Error("The run belongs to a user, but auth.path is not set."));
      context.set("authorize", custom.authorize);
    }
    if (isLimited) this.#uploads.admit(context, caller);
    const requireOpenResponse = () => (isLimited ? answers.check(caller) : undefined);
    if (LONG_RUNNING.test(context.req.path)) requireOpenResponse();
    context.set("requireOpenResponse", requireOpenResponse);
    context.set("caller", caller);
    context.set("onAccessEnd", accessEndOf({ caller, onEnd, isLimited }, answers));
  }
}

/** Apart, because an open response retains the function, and a closure of #admit would also retain the context of the request. */
const accessEndOf =
  ({ caller, onEnd, isLimited }: Admission, answers: OpenResponseLimit): OnAccessEnd =>
  (listener) => {
    const cleanups = [onEnd(listener), ...(isLimited ? [answers.enter(caller)] : [])];
    return () => {
      for (const cleanup of cleanups.splice(0)) cleanup();
    };
  };

/**
 * Admits a request to the agent server of a project with an authentication handler. The handler authenticates the user, unless there is
 * an administrator's key or JWT or, on a path without a scope, another valid key or JWT, from which the scope `agents` is removed.
 */
async function admitToAgents(
  access: Access,
  credentials: Credentials,
  custom: CustomAuthentication,
  { request, scope }: { request: Request; scope: Scope | null | undefined },
): Promise<Admission> {
  const admission = await access.admitIfValid(credentials);
  if (admission && mayUse(admission.caller, "admin")) return admission;
  if (admission && !scope) {
    const scopes = admission.caller.scopes.filter((other) => other !== "agents");
    return { ...admission, caller: { ...admission.caller, scopes } };
  }
  return { caller: await custom.authenticate(request), onEnd: () => () => undefined, isLimited: true };
}

const SECRET_SCOPES: ReadonlySet<Scope> = new Set(["tokens", "providers", "deployments", "admin"]);

/** @param header returns the value of a header by its lower-case name */
export const credentialsOf = (header: (name: string) => string | undefined): Credentials => ({
  api_key: header("x-api-key"),
  bearer: /^Bearer +(\S.*)$/i.exec(header("authorization") ?? "")?.[1],
  tenant_id: header("x-tenant-id"),
});

/** Requests whose responses may stay open as long as a run takes. */
const LONG_RUNNING = /\/(stream|wait|join)(\/|$)|\/ag-ui\/[^/]+$/;

/** Maximum numbers of open responses in this process. */
export interface OpenLimits {
  per_user: number;
  /** Undefined if it is not limited. */
  per_workspace: number | undefined;
}

/** Limits how many responses users and workspaces keep open in this process. Every open response occupies memory. */
class OpenResponseLimit {
  readonly #max: OpenLimits;
  readonly #counts = new Map<string, number>();

  constructor(max: OpenLimits) {
    this.#max = max;
  }

  /** @throws ApiError too_many_open, too_many_open_in_workspace before the request has any effect */
  check({ tenant_id, user_id }: Caller): void {
    const { per_user, per_workspace } = this.#max;
    if (this.#countOf(userKey(tenant_id, user_id)) >= per_user)
      throw new ApiError("too_many_open", { user_id, max: per_user });
    if (per_workspace !== undefined && this.#countOf(tenant_id) >= per_workspace)
      throw new ApiError("too_many_open_in_workspace", { max: per_workspace });
  }

  /** Counts one open response until the returned function is called. */
  enter({ tenant_id, user_id }: Caller): () => void {
    const keys = [userKey(tenant_id, user_id), tenant_id];
    for (const key of keys) this.#add(key, 1);
    return () => {
      for (const key of keys) this.#add(key, -1);
    };
  }

  #countOf = (key: string): number => this.#counts.get(key) ?? 0;

  #add(key: string, change: number): void {
    const count = this.#countOf(key) + change;
    if (count > 0) this.#counts.set(key, count);
    else this.#counts.delete(key);
  }
}

const userKey = (tenant_id: string, user_id: string): string => `${tenant_id} ${user_id}`;
