import type { Config } from "../../config/config.ts";
import type { ExperimentsOptions } from "../../experiments/worker/experiments-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopbackHost } from "../../platform/lib/safe-fetch/addresses.ts";
import { fileOf } from "./open-data.ts";

export const experimentsOptions = (config: Config, log: Log): ExperimentsOptions => ({
  database: config.database_url
    ? { url: config.database_url }
    : { file: fileOf(config, "experiments"), synchronous: synchronousOf(config) },
  log_level: config.log_level,
  span_export: spanExportOf(config, log),
});

/** Durability of a commit: with `serve` it survives a power failure, with `dev` a crash of the process. */
export const synchronousOf = ({ command }: Pick<Config, "command">) => (command === "serve" ? "full" : "normal");

/** The variables may be meant for the graphs, so unusable values cause only a warning. */
function spanExportOf(config: Config, log: Log): ExperimentsOptions["span_export"] {
  const { otlp_endpoint, otlp_traces_endpoint, otlp_protocol, otlp_exporter, otlp_resource = {} } = config;
  const text = otlp_traces_endpoint ?? otlp_endpoint;
  if (text === undefined || config.otlp_disabled || otlp_exporter === "none") return undefined;
  const url = URL.parse(otlp_traces_endpoint ?? `${text.replace(/\/+$/, "")}/v1/traces`);
  const refuse = (reason: string) => void log.warn({ endpoint: text, reason }, "traces are not exported");
  if (otlp_exporter !== "otlp") return refuse(`the exporter is ${otlp_exporter}, not otlp`);
  if (!url || !/^https?:$/.test(url.protocol)) return refuse("the endpoint is not an http or https URL");
  if (otlp_protocol !== "http/protobuf" && otlp_protocol !== "http/json")
    return refuse(`the protocol is ${otlp_protocol}, not http/protobuf or http/json`);
  if (isOwn(url, config)) return refuse("the endpoint is this service, which already stores the traces");
  return {
    url: url.href,
    protocol: otlp_protocol,
    headers: config.otlp_headers ?? {},
    resource: {
      ...otlp_resource,
      "service.name": config.otlp_service_name ?? otlp_resource["service.name"] ?? "threadmill",
    },
    includes_ingested: config.otlp_export === "all",
    has_payloads: config.otlp_payloads,
  };
}

/** Whether a URL is an address of this service. Exporting to it would store each trace again and again. */
function isOwn(url: URL, { host, port, public_url }: Config): boolean {
  if (public_url !== undefined && url.origin === new URL(public_url).origin) return true;
  const url_port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  return url_port === port && (isLoopbackHost(url.hostname) || url.hostname === host);
}
