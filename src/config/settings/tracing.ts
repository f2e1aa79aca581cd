import { ConfigError } from "../../platform/errors.ts";
import { enabled, integer, oneOf, type Read, setting, text } from "./setting.ts";

/** Parses the fraction of runs that are traced. */
const fraction: Read<number> = (value, name) => {
  if (value === "on" || value === "off") return value === "on" ? 1 : 0;
  const number = Number(value);
  if (value.trim() !== "" && number >= 0 && number <= 1) return number;
  throw new ConfigError(
    `${name} must be "on", "off", or a number from 0.0 to 1.0 (the fraction of runs to trace), but is "${value}".`,
  );
};

/** Settings for tracing agent runs and exporting traces. Variables that begin with `OTEL` are the standard ones of OpenTelemetry. */
export const tracingSettings = {
  tracing_rate: setting("THREADMILL_TRACING", fraction, {
    visibility: "public",
    shown_default: "`on` with `dev`, `0.1` with `serve`",
    meaning:
      "Whether agent runs are stored as [traces](tracing.md#runs-of-agents): `on`, `off`, or the fraction of runs to store, such as `0.1`. Runs that set `langsmith_tracer` are traced unless the value is `off`.",
  }),
  tracing_project: setting("THREADMILL_TRACING_PROJECT", text, {
    shown_default: "the name of the graph",
    meaning: "Project for the traces of runs that do not specify one.",
  }),
  trace_stateless: setting("THREADMILL_TRACE_STATELESS", enabled, {
    default: "0",
    shown_default: "off",
    meaning:
      "Whether to also trace stateless runs whose thread is deleted when the run ends. By default, they are traced only if they set `langsmith_tracer`.",
  }),
  otlp_endpoint: setting("OTEL_EXPORTER_OTLP_ENDPOINT", text, {
    meaning:
      "URL of an OpenTelemetry backend that receives the traces, [without their inputs and outputs](tracing.md#export). Traces are sent to the path `/v1/traces` under this URL.",
  }),
  otlp_traces_endpoint: setting("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", text, {
    meaning: "URL that receives traces; no path is appended. Takes precedence over `OTEL_EXPORTER_OTLP_ENDPOINT`.",
  }),
  otlp_headers: setting(["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"], pairs, {
    secret: true,
    meaning: "HTTP headers of export requests, such as `authorization=Bearer%20key,x-team=blue`.",
  }),
  otlp_protocol: setting(["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"], text, {
    default: "http/protobuf",
    meaning: "Export protocol: `http/protobuf` or `http/json`. With any other protocol, no traces are exported.",
  }),
  otlp_service_name: setting("OTEL_SERVICE_NAME", text, {
    shown_default: "`service.name` in `OTEL_RESOURCE_ATTRIBUTES`, else `threadmill`",
    meaning: "`service.name` of the exported traces.",
  }),
  otlp_resource: setting("OTEL_RESOURCE_ATTRIBUTES", pairs, {
    meaning: "Resource attributes of exported traces and metrics, such as `deployment.environment=prod,team=blue`.",
  }),
  otlp_exporter: setting("OTEL_TRACES_EXPORTER", text, {
    default: "otlp",
    meaning: "`otlp`, or `none` to export no traces. Other exporters are not supported.",
  }),
  otlp_metrics_exporter: setting("OTEL_METRICS_EXPORTER", text, {
    shown_default: "`otlp` if `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` is set, else `none`",
    meaning:
      "`otlp` to also send the [metrics](configuration.md#monitoring) of the process to the backend, or `none`. The default differs from OpenTelemetry's, because many tracing backends do not accept metrics.",
  }),
  otlp_metrics_endpoint: setting("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", text, {
    meaning:
      "URL that receives metrics; no path is appended. Default: the path `/v1/metrics` under `OTEL_EXPORTER_OTLP_ENDPOINT`.",
  }),
  otlp_metrics_headers: setting(["OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"], pairs, {
    secret: true,
    meaning: "HTTP headers of metric exports.",
  }),
  otlp_metrics_protocol: setting(["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"], text, {
    default: "http/protobuf",
    meaning: "Protocol of metric exports: `http/protobuf` or `http/json`.",
  }),
  otlp_metrics_interval_ms: setting("OTEL_METRIC_EXPORT_INTERVAL", integer(1, 86_400_000), {
    default: "60000",
    meaning: "Interval between metric exports, in milliseconds.",
  }),
  otlp_disabled: setting("OTEL_SDK_DISABLED", isTrue, {
    default: "false",
    meaning: "`true` disables the export.",
  }),
  otlp_export: setting("THREADMILL_OTLP_EXPORT", oneOf(["agents", "all"]), {
    default: "agents",
    meaning:
      "Which traces to export: `agents` for traces of agent runs only, or `all` to include traces that clients send.",
  }),
  otlp_payloads: setting("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", isTrue, {
    default: "false",
    meaning: "Whether to also export inputs and outputs: `true` or `false`.",
  }),
};

/** A boolean of OpenTelemetry: every other text means false. */
function isTrue(value: string): boolean {
  return value.toLowerCase() === "true";
}

/** Parses `name=value` pairs that are separated by commas. The values are percent-encoded. */
function pairs(value: string, name: string): Record<string, string> {
  const parts = value.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    parts.map((pair) => {
      const [, key = "", encoded = ""] = /^\s*([^=\s]+)\s*=(.*)$/.exec(pair) ?? [];
      const text = key === "" ? undefined : decoded(encoded.trim());
      if (text === undefined)
        throw new ConfigError(`${name} must have the form name=value,name=value with percent-encoded values.`);
      return [key, text];
    }),
  );
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
