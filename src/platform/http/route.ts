import type { Duplex } from "node:stream";
import type { OpenAPIHono, RouteConfig, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { WebSocket } from "ws";
import type { Caller } from "../contract/caller.ts";
import { exactIssues } from "../contract/validation-errors.ts";
import { ApiError } from "../errors.ts";
import { JsonError } from "../lib/json/json.ts";
import type { BodyParser } from "./body-parser.ts";

/** Registers `listener` to be called when the caller's access ends. The returned function removes it. */
export type OnAccessEnd = (listener: (error: ApiError) => void) => () => void;

/** Accepts the WebSocket that a request opens, on its connection. The response of the handler is then ignored. */
export type AcceptSocket = (serve: (socket: WebSocket, connection: Duplex) => void) => void;

export interface Env {
  /**
   * Requests from the network cannot set these. `caller` and `origin` are set for requests from within this process: the caller, and whether
   * the HTTP app of the project or a webhook sends the request. `accept` is set for requests that open a WebSocket.
   */
  Bindings: { caller?: Caller | undefined; origin?: "app" | "webhook" | undefined; accept?: AcceptSocket };
  Variables: {
    caller: Caller;
    body_parser: BodyParser;
    onAccessEnd: OnAccessEnd;
    /** Throws too_many_open if the caller has reached its limit of open responses. For routes that stay open only for some requests. */
    requireOpenResponse: () => void;
    authorize: Authorize | undefined;
  };
}

/** The parts of a checked request that its authorization reads and may replace. */
export interface RequestParts {
  params: object;
  query: object;
  body: unknown;
  caller: Caller;
}

/** Authorizes a checked request, and returns the parts to handle. */
export type Authorize = (route: RouteConfig, parts: RequestParts) => Promise<RequestParts>;

export type App = OpenAPIHono<Env>;

type Output<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;
type RequestOf<R extends RouteConfig> = NonNullable<R["request"]>;
type BodyOf<R extends RouteConfig> =
  RequestOf<R> extends { body: { content: { "application/json": { schema: infer S } } } } ? Output<S> : undefined;

/** A request whose parts match the schemas of its route. */
export interface Checked<R extends RouteConfig> {
  params: RequestOf<R> extends { params: infer S } ? Output<S> : Record<string, never>;
  query: RequestOf<R> extends { query: infer S } ? Output<S> : Record<string, never>;
  headers: RequestOf<R> extends { headers: infer S } ? Output<S> : Record<string, never>;
  body: BodyOf<R>;
  caller: Caller;
  /** Aborted when the client closes the connection; see clientAbortOf() for responses that stay open. */
  signal: AbortSignal;
  context: Context<Env>;
}

export type Handler<R extends RouteConfig> = (request: Checked<R>) => Promise<Response> | Response;

export interface Mismatch {
  part: "path" | "query" | "header" | "body";
  value: unknown;
  issues: readonly z.core.$ZodIssue[];
}

export interface RequestErrors {
  /** @param mismatches in the order path, query, header, body; at least one */
  invalid(mismatches: readonly Mismatch[]): Error;
  malformedJson(error: JsonError): Error;
}

/** Returns errors whose message contains up to three reasons. */
export const errorsOf = (code: "invalid_request" | "invalid_command"): RequestErrors => ({
  invalid(mismatches) {
    const reasons = mismatches.flatMap(({ part, issues }) =>
      exactIssues(issues).map(({ issue, path }) => `${[part, ...path].join(".")}: ${issue.message}`),
    );
    return new ApiError(code, { reason: reasons.slice(0, 3).join("; ") });
  },
  malformedJson: ({ message }) => new ApiError(code, { reason: `The body ${message}.` }),
});

const plainErrors = errorsOf("invalid_request");

export interface InputRules {
  query(context: Context): Record<string, string | string[]>;
  /** @param body the parsed body; undefined if the request has no body */
  body(body: unknown): unknown;
}

/**
 * A single value is a string, repeated values are a list. Empty and duplicate values are ignored: clients send an empty value for a missing
 * one, and repeat their query when they reconnect to a Location that contains it.
 */
const lenientInput: InputRules = {
  query(context) {
    const entries = Object.entries(context.req.queries()).flatMap(([name, values]): [string, string | string[]][] => {
      const [first, ...others] = new Set(values.filter((value) => value !== "").map(withoutNul));
      return first === undefined ? [] : [[name, others.length === 0 ? first : [first, ...others]]];
    });
    return Object.fromEntries(entries);
  },
  body: (body) => (body === undefined ? {} : body),
};

/** Replaces NUL, which Postgres cannot store in text. */
export const withoutNul = (text: string): string => text.replaceAll("\0", "\ufffd");

/** Serves a route and adds it to the OpenAPI document. */
export function serve<R extends RouteConfig>(app: App, route: R, handler: Handler<R>, errors = plainErrors): void {
  app.openAPIRegistry.registerPath(route);
  handleRoute(app, route, handler, errors);
}

/** Like {@link serve}, but not in the OpenAPI document, and with other rules for input and errors. */
export function handleRoute<R extends RouteConfig>(
  app: App,
  route: R,
  handler: Handler<R>,
  errors: RequestErrors,
  input: InputRules = lenientInput,
): void {
  const { params, query, headers, body } = route.request ?? {};
  const bodySchema = (body?.content["application/json"] as { schema?: z.ZodType } | undefined)?.schema;
  // Hono writes :name where OpenAPI writes {name}.
  app.on(route.method.toUpperCase(), route.path.replaceAll(/\{(\w+)\}/g, ":$1"), async (context) => {
    const mismatches: Mismatch[] = [];
    const check = (part: Mismatch["part"], schema: unknown, value: unknown): unknown => {
      if (!schema) return {};
      const result = (schema as z.ZodType).safeParse(value, { reportInput: true });
      if (!result.success) mismatches.push({ part, value, issues: result.error.issues });
      return result.data;
    };
    // A body that is not JSON is reported before other errors.
    const given = bodySchema && input.body(await bodyOf(context, errors));
    const checked = {
      params: check("path", params, pathOf(context)),
      query: check("query", query, input.query(context)),
      headers: check("header", headers, headersOf(context, headers)),
      body: bodySchema && check("body", bodySchema, given),
      caller: context.get("caller"),
      signal: context.req.raw.signal,
      context,
    };
    if (mismatches.length > 0) throw errors.invalid(mismatches);
    const authorized = await context.get("authorize")?.(route, checked as RequestParts);
    return handler({ ...checked, ...authorized } as unknown as Checked<R>);
  });
}

const pathOf = (context: Context): Record<string, string> =>
  Object.fromEntries(Object.entries(context.req.param()).map(([name, value]) => [name, withoutNul(String(value))]));

/** The declared headers, under their declared names. */
function headersOf(context: Context, schema: unknown): Record<string, string | undefined> {
  const names = Object.keys((schema as { shape?: object } | undefined)?.shape ?? {});
  return Object.fromEntries(names.map((name) => [name, context.req.header(name)]));
}

async function bodyOf(context: Context<Env>, errors: RequestErrors): Promise<unknown> {
  try {
    return await context.get("body_parser").parse(context.req);
  } catch (error) {
    if (error instanceof JsonError) throw errors.malformedJson(error);
    throw error;
  }
}

export const jsonText = (text: string, headers: Record<string, string> = {}): Response =>
  new Response(text, { headers: { "content-type": "application/json", ...headers } });

/** A handler that sends the result of `run` with the success status of the route: 200, 201, or 204 without a body. */
export function jsonHandler<R extends RouteConfig>(route: R, run: (request: Checked<R>) => unknown): Handler<R> {
  // The first status is the success status, because JavaScript objects list numeric keys in ascending order.
  const status = Number(Object.keys(route.responses)[0]);
  return async (request) => {
    const body = await run(request);
    if (status === 204) return request.context.body(null, 204);
    return request.context.json(body as object, status as ContentfulStatusCode);
  };
}
