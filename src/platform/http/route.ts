import type { OpenAPIHono, RouteConfig, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { Caller } from "../contract/caller.ts";
import { exactIssues } from "../contract/invalid-parts.ts";
import { ApiError } from "../errors.ts";
import { JsonError } from "../lib/json/json.ts";
import type { BodyParser } from "./body-parser.ts";
import { lenient, type Reading, withoutNul } from "./reading.ts";

/** Calls `listener` once when what let the caller in has ended, until the returned function is called. */
export type OnAccessEnd = (listener: (error: ApiError) => void) => () => void;

/** What requests bring along, and what the middleware leaves for the handlers. */
export interface Env {
  /** `caller`: who sends a request that comes from within this process; a connection cannot say it. */
  Bindings: { caller?: Caller };
  Variables: { caller: Caller; body_parser: BodyParser; onAccessEnd: OnAccessEnd };
}

export type App = OpenAPIHono<Env>;

type Output<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;
type RequestOf<R extends RouteConfig> = NonNullable<R["request"]>;
type BodyOf<R extends RouteConfig> =
  RequestOf<R> extends { body: { content: { "application/json": { schema: infer S } } } } ? Output<S> : undefined;

/** A request whose parts have been checked against its route. */
export interface Checked<R extends RouteConfig> {
  params: RequestOf<R> extends { params: infer S } ? Output<S> : Record<string, never>;
  query: RequestOf<R> extends { query: infer S } ? Output<S> : Record<string, never>;
  headers: RequestOf<R> extends { headers: infer S } ? Output<S> : Record<string, never>;
  body: BodyOf<R>;
  caller: Caller;
  /** Aborted when the client has hung up; see goneWith() for answers that stay open. */
  signal: AbortSignal;
  context: Context<Env>;
}

export type Handler<R extends RouteConfig> = (request: Checked<R>) => Promise<Response> | Response;

/** A part of a request that does not match its schema. */
export interface Mismatch {
  part: "path" | "query" | "header" | "body";
  value: unknown;
  issues: readonly z.core.$ZodIssue[];
}

/** Makes the error of a request whose parts do not match their schemas, or whose body is not JSON. */
export interface Refusal {
  /** @param mismatches in the order path, query, header, body; at least one */
  invalid(mismatches: readonly Mismatch[]): Error;
  unreadable(error: JsonError): Error;
}

/** The agent server's: one sentence with up to three reasons. */
const bySentence: Refusal = {
  invalid(mismatches) {
    const reasons = mismatches.flatMap(({ part, issues }) =>
      exactIssues(issues).map(({ issue, path }) => `${[part, ...path].join(".")}: ${issue.message}`),
    );
    return new ApiError("invalid_request", { reason: reasons.slice(0, 3).join("; ") });
  },
  unreadable: ({ message }) => new ApiError("invalid_request", { reason: `The body ${message}.` }),
};

/** Serves a route of the contract: checks the request against it, then calls the handler; adds it to the API's document. */
export function serve<R extends RouteConfig>(app: App, route: R, handler: Handler<R>): void {
  app.openAPIRegistry.registerPath(route);
  answer(app, route, handler, bySentence);
}

/** {@link serve} without the document, and with other ways to read and to refuse. */
export function answer<R extends RouteConfig>(
  app: App,
  route: R,
  handler: Handler<R>,
  refusal: Refusal,
  reading: Reading = lenient,
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
    // What is no JSON is told before anything else.
    const given = bodySchema && reading.body(await bodyOf(context, refusal));
    const checked = {
      params: check("path", params, pathOf(context)),
      query: check("query", query, reading.query(context)),
      headers: check("header", headers, headersOf(context, headers)),
      body: bodySchema && check("body", bodySchema, given),
      caller: context.get("caller"),
      signal: context.req.raw.signal,
      context,
    };
    if (mismatches.length > 0) throw refusal.invalid(mismatches);
    return handler(checked as unknown as Checked<R>);
  });
}

const pathOf = (context: Context): Record<string, string> =>
  Object.fromEntries(Object.entries(context.req.param()).map(([name, value]) => [name, withoutNul(String(value))]));

/** The declared headers under their declared spelling. */
function headersOf(context: Context, schema: unknown): Record<string, string | undefined> {
  const names = Object.keys((schema as { shape?: object } | undefined)?.shape ?? {});
  return Object.fromEntries(names.map((name) => [name, context.req.header(name)]));
}

/** The JSON body; undefined for a request without one. */
async function bodyOf(context: Context<Env>, refusal: Refusal): Promise<unknown> {
  try {
    return await context.get("body_parser").parse(context.req);
  } catch (error) {
    if (error instanceof JsonError) throw refusal.unreadable(error);
    throw error;
  }
}

/** A response whose body is JSON text already. */
export const jsonText = (text: string, headers: Record<string, string> = {}): Response =>
  new Response(text, { headers: { "content-type": "application/json", ...headers } });
