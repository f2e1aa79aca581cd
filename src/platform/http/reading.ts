import type { Context } from "hono";

/** What an API makes of a query string, and of a body that is not there. */
export interface Reading {
  query(context: Context): Record<string, string | string[]>;
  /** @param body undefined without a body */
  body(body: unknown): unknown;
}

/**
 * One value as itself, repeated ones as a list. Clients send an empty value for "not set", and their own query
 * again when they reconnect to a Location that has it: neither counts. No body is an empty one.
 */
export const lenient: Reading = {
  query(context) {
    const given = Object.entries(context.req.queries()).map(([name, values]) => [
      name,
      [...new Set(values.filter((value) => value !== "").map(withoutNul))],
    ]) as [string, string[]][];
    const entries = given.filter(([, values]) => values.length > 0);
    return Object.fromEntries(
      entries.map(([name, values]) => [name, values.length === 1 ? (values[0] as string) : values]),
    );
  },
  body: (body) => (body === undefined ? {} : body),
};

/** As FastAPI reads: an empty value is a text like any other, of a repeated one the last counts, and `null` is no body. */
export const lastWins: Reading = {
  query: (context) =>
    Object.fromEntries(
      Object.entries(context.req.queries()).map(([name, values]) => [name, withoutNul(values.at(-1) as string)]),
    ),
  body: (body) => body ?? undefined,
};

/** No database can hold a NUL in a text. */
export const withoutNul = (text: string): string => text.replaceAll("\0", "\ufffd");
