import type { OpenAPIHono, RouteConfig, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { Caller } from "../contract/caller.ts";
import { ApiError } from "../errors.ts";
import { JsonError, parseUntrusted } from "../lib/json.ts";

/** What the middleware leaves for the handlers. */
export interface Env {
  Variables: { caller: Caller };
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
  /** Aborted when the client is gone. */
  signal: AbortSignal;
  context: Context<Env>;
}

export type Handler<R extends RouteConfig> = (request: Checked<R>) => Promise<Response> | Response;

/** Makes the error of a request whose `part` (path, query, header, body) does not match its schema, or is not JSON. */
export interface Refusal {
  invalid(issues: readonly z.core.$ZodIssue[], part: string): Error;
  unreadable(reason: string): Error;
}

/** The agent server's: one sentence with up to three reasons. */
const bySentence: Refusal = {
  invalid(issues, part) {
    const reasons = issues.slice(0, 3).map((issue) => `${[part, ...issue.path].join(".")}: ${issue.message}`);
    return new ApiError("invalid_request", { reason: reasons.join("; ") });
  },
  unreadable: (reason) => new ApiError("invalid_request", { reason }),
};

/** Serves a route of the contract: checks the request against it, then calls the handler; adds it to the API's document. */
export function serve<R extends RouteConfig>(app: App, route: R, handler: Handler<R>): void {
  app.openAPIRegistry.registerPath(route);
  answer(app, route, handler, bySentence);
}

/** {@link serve} without the document, and with another way to refuse. */
export function answer<R extends RouteConfig>(app: App, route: R, handler: Handler<R>, refusal: Refusal): void {
  const { params, query, headers, body } = route.request ?? {};
  const bodySchema = (body?.content["application/json"] as { schema?: z.ZodType } | undefined)?.schema;
  const check = (schema: unknown, value: unknown, part: string): unknown => {
    if (!schema) return {};
    const result = (schema as z.ZodType).safeParse(value, { reportInput: true });
    if (result.success) return result.data;
    throw refusal.invalid(result.error.issues, part);
  };
  // Hono writes :name where OpenAPI writes {name}.
  app.on(route.method.toUpperCase(), route.path.replaceAll(/\{(\w+)\}/g, ":$1"), async (context) => {
    const checked = {
      params: check(params, pathOf(context), "path"),
      query: check(query, queryOf(context), "query"),
      headers: check(headers, headersOf(context, headers), "header"),
      body: bodySchema ? check(bodySchema, await bodyOf(context, refusal), "body") : undefined,
      caller: context.get("caller"),
      signal: context.req.raw.signal,
      context,
    };
    return handler(checked as unknown as Checked<R>);
  });
}

/**
 * One value as itself, repeated ones as a list. Clients send an empty value for "not set", and their own query
 * again when they reconnect to a Location that has it: neither counts.
 */
function queryOf(context: Context): Record<string, string | string[]> {
  const given = Object.entries(context.req.queries()).map(([name, values]) => [
    name,
    [...new Set(values.filter((value) => value !== "").map(withoutNul))],
  ]) as [string, string[]][];
  const entries = given.filter(([, values]) => values.length > 0);
  return Object.fromEntries(
    entries.map(([name, values]) => [name, values.length === 1 ? (values[0] as string) : values]),
  );
}

/** No database can hold a NUL in a text. */
const withoutNul = (text: string): string => text.replaceAll("\0", "\ufffd");

const pathOf = (context: Context): Record<string, string> =>
  Object.fromEntries(Object.entries(context.req.param()).map(([name, value]) => [name, withoutNul(String(value))]));

/** The declared headers under their declared spelling. */
function headersOf(context: Context, schema: unknown): Record<string, string | undefined> {
  const names = Object.keys((schema as { shape?: object } | undefined)?.shape ?? {});
  return Object.fromEntries(names.map((name) => [name, context.req.header(name)]));
}

/** The JSON body; a request without one reads as an empty object. */
async function bodyOf(context: Context, refusal: Refusal): Promise<unknown> {
  const text = await context.req.text();
  if (text.trim() === "") return {};
  try {
    return parseUntrusted(text);
  } catch (error) {
    if (error instanceof JsonError) throw refusal.unreadable(`The body ${error.message}.`);
    throw error;
  }
}

/** A response whose body is JSON text already. */
export const jsonText = (text: string, headers: Record<string, string> = {}): Response =>
  new Response(text, { headers: { "content-type": "application/json", ...headers } });
