import type { JsonMetricsSerializer, JsonTraceSerializer } from "@opentelemetry/otlp-transformer";

/** An OpenTelemetry backend. */
export interface OtlpBackend {
  url: string;
  protocol: "http/protobuf" | "http/json";
  headers: Record<string, string>;
  /** Attributes of the resource, with `service.name`. */
  resource: Record<string, string>;
}

export interface OtlpExporter<Batch> {
  /** Rejects if the backend refused the batch or did not respond, also after retries. */
  export(batch: Batch): Promise<void>;
  shutdown(): Promise<void>;
}

/** What a request of each signal contains. */
interface Batches {
  traces: Parameters<typeof JsonTraceSerializer.serializeRequest>[0];
  metrics: Parameters<typeof JsonMetricsSerializer.serializeRequest>[0];
}

/** Imports the packages on first use. The official exporter packages make the same calls, but each supports only one serializer. */
export async function createOtlpExporter<Signal extends keyof Batches>(
  signal: Signal,
  { url, headers, protocol }: OtlpBackend,
): Promise<OtlpExporter<Batches[Signal]>> {
  const { convertLegacyHttpOptions, createOtlpHttpExportDelegate } = await import(
    "@opentelemetry/otlp-exporter-base/node-http"
  );
  const otlp = await import("@opentelemetry/otlp-transformer");
  const isJson = protocol === "http/json";
  const type = isJson ? "application/json" : "application/x-protobuf";
  const [serializer, helper] =
    signal === "traces"
      ? [isJson ? otlp.JsonTraceSerializer : otlp.ProtobufTraceSerializer, otlp.TraceExporterMetricsHelper]
      : [isJson ? otlp.JsonMetricsSerializer : otlp.ProtobufMetricsSerializer, otlp.MetricsExporterMetricsHelper];
  const options = convertLegacyHttpOptions({ url, headers }, signal.toUpperCase(), `v1/${signal}`, {
    "Content-Type": type,
  });
  const delegate = createOtlpHttpExportDelegate<Batches[Signal], unknown>(
    options,
    serializer as never,
    `otlp_http_${signal}_exporter`,
    helper as never,
    undefined,
  );
  return {
    export: (batch) =>
      new Promise((resolve, reject) => {
        delegate.export(batch, ({ error }) => (error ? reject(error) : resolve()));
      }),
    shutdown: () => delegate.shutdown(),
  };
}
