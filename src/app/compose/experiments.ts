import type { Config } from "../../config/config.ts";
import type { ExperimentsOptions } from "../../experiments/worker/experiments-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import { fileOf } from "./open-data.ts";
import { traceBackend } from "./otlp.ts";

export const experimentsOptions = (config: Config, log: Log): ExperimentsOptions => ({
  database: config.database_url
    ? { url: config.database_url }
    : { file: fileOf(config, "experiments"), synchronous: synchronousOf(config) },
  log_level: config.log_level,
  span_export: spanExportOf(config, log),
});

/** Durability of a commit: with `serve` it survives a power failure, with `dev` a crash of the process. */
export const synchronousOf = ({ command }: Pick<Config, "command">) => (command === "serve" ? "full" : "normal");

function spanExportOf(config: Config, log: Log): ExperimentsOptions["span_export"] {
  const backend = traceBackend(config, log);
  return backend && { ...backend, includes_ingested: config.otlp_export === "all", has_payloads: config.otlp_payloads };
}
