import type { JsonMetricsSerializer } from "@opentelemetry/otlp-transformer";
import type { Context } from "hono";
import { matchedRoutes } from "hono/route";
import { Gauge, Histogram, type MetricObjectWithValues, type MetricValueWithName, type Registry } from "prom-client";
import type { Database } from "../platform/database/database.ts";
import type { Env } from "../platform/http/route.ts";
import { type BackgroundService, periodicService } from "../platform/lib/background-service.ts";
import type { Log } from "../platform/lib/log.ts";
import { createOtlpExporter, type OtlpBackend, type OtlpExporter } from "../platform/lib/otlp-exporter.ts";
import { withTimeout } from "../platform/lib/signal.ts";

const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Returns the path pattern of the matched route, if any. Ignores middleware, which is registered for the method ALL. */
export const routeOf = (context: Context): string | undefined =>
  matchedRoutes(context).find(({ method }) => method !== "ALL")?.path;

/** @returns a function that records the time until a response started */
export function httpMetrics(registry: Registry): (context: Context<Env>, duration_ms: number) => void {
  const durations = new Histogram({
    name: "threadmill_http_request_duration_seconds",
    help: "Time from a request to the start of its response. If a request waits for a run, the response starts after at most 1 s, even if the run has not ended.",
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
    help: "Postgres connections of this process, by state: `active` or `idle`. For the state `waiting`, the value is the number of callers that are waiting for a connection.",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(connections())) this.set({ state }, count);
    },
  });
}

export interface MetricsExportOptions extends OtlpBackend {
  interval_ms: number;
}

type ResourceMetrics = Parameters<typeof JsonMetricsSerializer.serializeRequest>[0];
type MetricData = ResourceMetrics["scopeMetrics"][number]["metrics"][number];
type Metric = MetricObjectWithValues<MetricValueWithName<string>>;

const STOP_MS = 2_000;

const CUMULATIVE = 1;
const KINDS = { histogram: 0, gauge: 2, counter: 3 } as const;
const DOUBLE = 1;

/** Sends the metrics of this process to an OpenTelemetry backend, at an interval and when it stops. */
export function metricsExport(options: MetricsExportOptions, registry: Registry, log: Log): BackgroundService {
  const started_at = Date.now();
  let exporter: Promise<OtlpExporter<ResourceMetrics>> | undefined;
  const warn = (error: unknown) => log.warn({ error }, "metrics not exported");
  const send = async () => {
    exporter ??= createOtlpExporter("metrics", options);
    const { export: sendTo } = await exporter;
    await sendTo(toOtlp(await registry.getMetricsAsJSON(), started_at, options.resource));
  };
  const periodic = periodicService(options.interval_ms, send, warn);
  return {
    start: () => periodic.start(),
    async stop() {
      await withTimeout(periodic.stop().then(send).catch(warn), STOP_MS);
    },
  };
}

/** Converts the metrics of prom-client. Names stay those of `/metrics`. */
function toOtlp(metrics: readonly unknown[], started_at: number, resource: Record<string, string>): ResourceMetrics {
  const times = { startTime: timeOf(started_at), endTime: timeOf(Date.now()) };
  return {
    resource: { attributes: resource } as unknown as ResourceMetrics["resource"],
    scopeMetrics: [
      { scope: { name: "threadmill" }, metrics: (metrics as Metric[]).map((metric) => toMetric(metric, times)) },
    ],
  };
}

type Times = Record<"startTime" | "endTime", [seconds: number, nanoseconds: number]>;

function toMetric({ name, help, type, values }: Metric, times: Times): MetricData {
  const kind = String(type) as keyof typeof KINDS;
  const points =
    kind === "histogram" ? histogramsOf(name, values) : values.map(({ labels, value }) => ({ labels, value }));
  return {
    descriptor: { name, description: help, unit: name.endsWith("_seconds") ? "s" : "1", valueType: DOUBLE },
    aggregationTemporality: CUMULATIVE,
    dataPointType: KINDS[kind],
    ...(kind === "counter" && { isMonotonic: true }),
    dataPoints: points.map(({ labels, value }) => ({ ...times, attributes: labels, value })),
  } as MetricData;
}

/** Collects the samples of each combination of labels. The samples of Prometheus count all values up to a boundary, those of OTLP the bucket. */
function histogramsOf(name: string, values: Metric["values"]) {
  const byLabels = Map.groupBy(values, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  return [...byLabels].map(([labels, samples]) => {
    const sampleOf = (suffix: string) =>
      samples.find(({ metricName }) => metricName === `${name}_${suffix}`)?.value ?? 0;
    const buckets = samples.filter(({ metricName }) => metricName === `${name}_bucket`);
    const boundaries = buckets.map(({ labels: { le } }) => Number(le)).filter(Number.isFinite);
    const counts = buckets.map(({ value }, i) => value - (buckets[i - 1]?.value ?? 0));
    return {
      labels: JSON.parse(labels) as Record<string, string>,
      value: { buckets: { boundaries, counts }, count: sampleOf("count"), sum: sampleOf("sum") },
    };
  });
}

/** Converts milliseconds to seconds and nanoseconds. */
const timeOf = (ms: number): [number, number] => [Math.floor(ms / 1000), (ms % 1000) * 1e6];
