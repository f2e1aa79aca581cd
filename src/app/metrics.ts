import type { Context } from "hono";
import { matchedRoutes } from "hono/route";
import { Gauge, Histogram, type Registry } from "prom-client";
import type { Database } from "../platform/database/database.ts";
import type { Env } from "../platform/http/route.ts";

const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Returns the path pattern of the matched route, if any. Ignores middleware, which is registered for the method ALL. */
export const routeOf = (context: Context): string | undefined =>
  matchedRoutes(context).find(({ method }) => method !== "ALL")?.path;

/** @returns a function that records the time until a response started */
export function httpMetrics(registry: Registry): (context: Context<Env>, duration_ms: number) => void {
  const durations = new Histogram({
    name: "threadmill_http_request_duration_seconds",
    help: "Time from a request to the start of its response. A response that waits for a run starts after at most 1 s.",
    labelNames: ["method", "route", "status"],
    buckets: BUCKETS_S,
    registers: [registry],
  });
  return (context, duration_ms) => {
    const { method } = context.req;
    durations.observe({ method, route: routeOf(context) ?? "none", status: context.res.status }, duration_ms / 1_000);
  };
}

/** Adds a metric of the database connections. Does nothing on SQLite. */
export function addConnectionMetrics(registry: Registry, { connections }: Database): void {
  if (!connections) return;
  new Gauge({
    name: "threadmill_database_connections",
    help: "Active and idle Postgres connections of this process, and callers waiting for a connection, by state.",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(connections())) this.set({ state }, count);
    },
  });
}
