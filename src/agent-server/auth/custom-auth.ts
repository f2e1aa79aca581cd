import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  type AuthResource,
  type AuthUser,
  type Caller,
  DEFAULT_TENANT,
  type Grant,
  type MetadataFilter,
} from "../../platform/contract/caller.ts";
import { searchable } from "../../platform/contract/fields.ts";
import { ApiError } from "../../platform/errors.ts";
import { isFromOwnPage, pathBelow } from "../../platform/http/base-url.ts";
import type { Authorize } from "../../platform/http/route.ts";
import { cleanJsonText, type JsonObject } from "../../platform/lib/json/json.ts";
import type { Log } from "../../platform/lib/log.ts";
import { defaultAssistantId } from "../assistants/default-assistants.ts";
import { runRoutes } from "../contract/runs.ts";
import type { GraphCatalog } from "../graph-catalog.ts";
import type { AuthEvent, AuthQuery, AuthRefusal } from "../graph-hosts/auth-queries.ts";
import { GraphQueryError, type QueryHost } from "../graph-hosts/query-host.ts";
import { type Demand, demandsOf, pathParametersOf, resourceOf } from "./route-demands.ts";

export interface AuthCacheSettings {
  /** Names of the headers that identify a user. */
  cache_keys: readonly string[];
  ttl_ms: number;
  max_size: number;
}

export interface CustomAuthOptions {
  /** A host that loads only the authentication module. */
  host: Pick<QueryHost, "query" | "reload" | "stop">;
  /** Undefined if authenticated users are not cached. */
  cache: AuthCacheSettings | undefined;
  public_url: string | undefined;
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
  catalog: GraphCatalog;
  log: Log;
}

export interface Decision {
  filter: MetadataFilter | undefined;
  /** The value with the changes of the handler; undefined if the event has no handler. */
  value?: JsonObject;
}

interface CachedUser {
  user: AuthUser;
  expires_at: number;
}

/** Authenticates and authorizes users with the project's handlers, which run in a graph host. If they fail, the request is refused. */
export class CustomAuth {
  readonly #options: CustomAuthOptions;
  /** Cached users in insertion order. The keys are digests, because the headers contain secrets. */
  readonly #users = new Map<string, CachedUser>();
  #handlers: Promise<ReadonlySet<string>> | undefined;
  /** Resolves when the last repeated query has ended. */
  #repeated: Promise<unknown> = Promise.resolve();

  constructor(options: CustomAuthOptions) {
    this.#options = options;
  }

  /** Loads the module. Until that succeeds, every request is refused. */
  async start(): Promise<void> {
    await this.#registered().catch(() => undefined);
  }

  reload(): void {
    this.#options.host.reload();
    this.#users.clear();
    this.#handlers = undefined;
    void this.start();
  }

  stop(): Promise<void> {
    return this.#options.host.stop();
  }

  /** @throws ApiError auth_refused, auth_failed */
  async authenticate({ method, url, headers: sent }: Request): Promise<Caller> {
    const headers = withoutForeignCookies(sent, this.#options.public_url);
    const key = this.#cacheKey(headers);
    const cached = key === undefined ? undefined : this.#users.get(key);
    if (cached && cached.expires_at > performance.now()) return callerOf(cached.user);
    const path_params = pathParametersOf(method, pathBelow(this.#options.prefix, new URL(url).pathname) ?? "");
    const query = { kind: "authenticate" as const, method, url, headers: [...headers], path_params };
    const answer = accepted(await this.#query(query));
    const user = JSON.parse(cleanJsonText(answer.user)) as AuthUser;
    if (key !== undefined) this.#remember(key, user);
    return callerOf(user);
  }

  /** Calls the handlers of the route's events, and applies their changes to the request. */
  readonly authorize: Authorize = async (route, given) => {
    const demands = demandsOf(route, given);
    const decisions = await Promise.all(demands.map((demand) => this.decide(given.caller, demand)));
    const grants: Partial<Record<AuthResource, Grant>> = {};
    let parts = given;
    try {
      for (const [n, { event, apply, is_template }] of demands.entries()) {
        const { value, filter } = decisions[n] as Decision;
        if (apply && value) parts = { ...parts, ...apply(parts as never, value) };
        const granted = grants[resourceOf(event)];
        const metadata = is_template ? searchable.parse(value?.metadata ?? {}) : granted?.metadata;
        grants[resourceOf(event)] = { filter: bothOf(granted?.filter, is_template ? undefined : filter), metadata };
      }
    } catch (error) {
      throw this.#failed(new Error(`a handler has set an invalid value: ${(error as Error).message}`));
    }
    return { ...parts, caller: { ...given.caller, grants } };
  };

  /**
   * Authorizes a run that a cron creates. Returns the caller with grants, and the metadata of the run.
   *
   * @throws ApiError auth_refused, auth_failed
   */
  async authorizeRun(caller: Caller, body: JsonObject, thread_id: string | undefined) {
    const params = { ...(thread_id !== undefined && { thread_id }) };
    const authorized = await this.authorize(runRoutes.createRun, { params, query: {}, body, caller });
    return { caller: authorized.caller, metadata: (authorized.body as { metadata: JsonObject }).metadata };
  }

  /** @throws ApiError auth_refused, auth_failed */
  async decide({ user }: Caller, { event, value }: Demand): Promise<Decision> {
    const names = await this.#registered();
    const action = event.slice(event.indexOf(":"));
    if (!user) throw new ApiError("auth_failed");
    if (![event, resourceOf(event), `*${action}`, "*"].some((name) => names.has(name))) return { filter: undefined };
    const texts = { user: JSON.stringify(user), value: JSON.stringify(value) };
    const decision = accepted(await this.#query({ kind: "authorize", event, ...texts }));
    return {
      filter: this.#filterFor(event, decision.filter),
      value: JSON.parse(cleanJsonText(decision.value)) as JsonObject,
    };
  }

  /** Returns the filter for an event. Default assistants belong to no user, so filters do not hide them. */
  #filterFor(event: AuthEvent, filter: MetadataFilter | undefined): MetadataFilter | undefined {
    if (!filter) return undefined;
    if (event.startsWith("store:"))
      throw this.#failed(
        new Error(
          `the handler of ${event} returned a filter, but store items have no metadata to filter. To restrict access, change value.namespace or throw an HTTPException`,
        ),
      );
    if (event !== "assistants:read" && event !== "assistants:search") return filter;
    const assistant_ids = this.#options.catalog.graphs.map(({ graph_id }) => defaultAssistantId(graph_id));
    return { any: [filter, { assistant_ids }] };
  }

  #registered(): Promise<ReadonlySet<string>> {
    this.#handlers ??= this.#query({ kind: "auth_handlers" }).then((names) => new Set(names));
    // A failure may be temporary, for example if the host ran out of memory.
    this.#handlers.catch(() => {
      this.#handlers = undefined;
    });
    return this.#handlers;
  }

  /**
   * If a handler blocks or crashes the host, concurrent queries of other requests also fail. Failed queries are repeated, one at a time, so
   * that only the query that causes the failure fails again.
   */
  async #query<Q extends AuthQuery>(query: Q) {
    const { host } = this.#options;
    try {
      return await host.query(query).catch((error) => {
        if (!(error instanceof GraphQueryError) || error.kind !== "GraphHostError") throw error;
        const repeated = this.#repeated.then(() => host.query(query));
        this.#repeated = repeated.catch(() => undefined);
        return repeated;
      });
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #failed(error: unknown): ApiError {
    const { name, message } = error as Error;
    const kind = error instanceof GraphQueryError ? error.kind : name;
    this.#options.log.error({ error: `${kind}: ${message}` }, "authentication module failed");
    return new ApiError("auth_failed", {}, error);
  }

  /** Returns the cache key of a request; undefined if users are not cached or the request has none of the headers. */
  #cacheKey(headers: Headers): string | undefined {
    const values = this.#options.cache?.cache_keys.map((name) => headers.get(name));
    if (!values?.some((value) => value !== null)) return undefined;
    return createHash("sha256").update(JSON.stringify(values)).digest("base64");
  }

  #remember(key: string, user: AuthUser): void {
    const { ttl_ms, max_size } = this.#options.cache as AuthCacheSettings;
    this.#users.delete(key);
    if (this.#users.size >= max_size) this.#users.delete(this.#users.keys().next().value as string);
    this.#users.set(key, { user, expires_at: performance.now() + ttl_ms });
  }
}

const callerOf = (user: AuthUser): Caller => ({
  tenant_id: DEFAULT_TENANT,
  user_id: user.identity,
  scopes: ["agents"],
  user,
});

/**
 * Removes the cookies of a request that a page of another origin has sent. Browsers add cookies to WebSockets and to requests without a
 * body from any page, so such a page could use the agent server as the user.
 */
function withoutForeignCookies(headers: Headers, public_url: string | undefined): Headers {
  const header = (name: string) => headers.get(name);
  if (!headers.has("cookie") || !(headers.has("origin") || headers.has("sec-fetch-site"))) return headers;
  if (isFromOwnPage(header, { public_url })) return headers;
  const kept = new Headers(headers);
  kept.delete("cookie");
  return kept;
}

/** Combines two filters, because several events of a request can concern the same resource. */
function bothOf(a: MetadataFilter | undefined, b: MetadataFilter | undefined): MetadataFilter | undefined {
  if (!a || !b || isDeepStrictEqual(a, b)) return a ?? b;
  return { all: [a, b] };
}

function accepted<A extends object>(answer: A | AuthRefusal): Exclude<A, AuthRefusal> {
  if (!("refused" in answer)) return answer as Exclude<A, AuthRefusal>;
  const { message, ...response } = answer.refused;
  throw ApiError.of("auth_refused", message, response);
}
