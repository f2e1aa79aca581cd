import type { Registry } from "prom-client";
import type { Config } from "../../config/config.ts";
import type { BackgroundService } from "../../platform/lib/background-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { OtlpBackend } from "../../platform/lib/otlp-exporter.ts";
import { isLoopbackHost } from "../../platform/lib/safe-fetch/addresses.ts";
import { metricsExport } from "../metrics.ts";

interface Signal {
  name: "traces" | "metrics";
  /** The URL of this signal; no path is appended. */
  endpoint: string | undefined;
  exporter: string;
  protocol: string;
  headers: Record<string, string> | undefined;
}

/** Returns undefined if traces are not exported. */
export const traceBackend = (config: Config, log: Log): OtlpBackend | undefined =>
  backendOf(config, log, {
    name: "traces",
    endpoint: config.otlp_traces_endpoint,
    exporter: config.otlp_exporter,
    protocol: config.otlp_protocol,
    headers: config.otlp_headers,
  });

/**
 * Returns no service if metrics are not exported. Unlike traces, they are not exported by default, because many backends of traces accept no
 * metrics.
 */
export function metricsExports(config: Config, registry: Registry, log: Log): BackgroundService[] {
  const endpoint = config.otlp_metrics_endpoint;
  const backend = backendOf(config, log, {
    name: "metrics",
    endpoint,
    exporter: config.otlp_metrics_exporter ?? (endpoint === undefined ? "none" : "otlp"),
    protocol: config.otlp_metrics_protocol,
    headers: config.otlp_metrics_headers,
  });
  return backend ? [metricsExport({ ...backend, interval_ms: config.otlp_metrics_interval_ms }, registry, log)] : [];
}

/** The variables may be meant for the graphs, so unusable values cause only a warning. */
function backendOf(config: Config, log: Log, { name, exporter, protocol, ...signal }: Signal): OtlpBackend | undefined {
  const { otlp_endpoint, otlp_resource = {} } = config;
  const text = signal.endpoint ?? otlp_endpoint;
  if (text === undefined || config.otlp_disabled || exporter === "none") return undefined;
  const url = URL.parse(signal.endpoint ?? `${text.replace(/\/+$/, "")}/v1/${name}`);
  const refuse = (reason: string) => void log.warn({ endpoint: text, reason }, `${name} are not exported`);
  if (exporter !== "otlp") return refuse(`the exporter is "${exporter}", but only "otlp" is supported`);
  if (!url || !/^https?:$/.test(url.protocol)) return refuse("the endpoint is not an http or https URL");
  if (protocol !== "http/protobuf" && protocol !== "http/json")
    return refuse(`the protocol ${protocol} is not supported: use http/protobuf or http/json`);
  if (isOwn(url, config)) return refuse(`the endpoint is this service, which does not export ${name} to itself`);
  return {
    url: url.href,
    protocol,
    headers: signal.headers ?? {},
    resource: {
      ...otlp_resource,
      "service.name": config.otlp_service_name ?? otlp_resource["service.name"] ?? "threadmill",
    },
  };
}

/** Whether a URL is an address of this service. Exporting to it would store each trace again and again. */
function isOwn(url: URL, { host, port, public_url }: Config): boolean {
  if (public_url !== undefined && url.origin === new URL(public_url).origin) return true;
  const url_port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  return url_port === port && (isLoopbackHost(url.hostname) || url.hostname === host);
}
