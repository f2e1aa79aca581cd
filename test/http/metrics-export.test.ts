import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { Scenario } from "./scenario.ts";

interface Received {
  path: string | undefined;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const RUN = { assistant_id: "chain", input: { steps: [] } };

describe("the export of metrics", () => {
  let backend: Server;
  let url: string;
  let received: Received[];
  beforeEach(async () => {
    received = [];
    backend = createServer(async (request, response) => {
      received.push({ path: request.url, headers: request.headers, body: await buffer(request) });
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    await once(backend.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  });
  afterEach(() => void backend.close());

  /** Runs a service with traffic, and returns what the backend received until the service had stopped. */
  async function exportedWith(
    env: Record<string, string>,
    use: (api: Scenario) => Promise<unknown>,
  ): Promise<Received[]> {
    const api = await Scenario.start("sqlite", { OTEL_METRIC_EXPORT_INTERVAL: "50", ...env });
    await use(api).finally(() => api.stop());
    return received;
  }

  it("sends counters, gauges and histograms with the values of /metrics", async () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/otlp/`,
      OTEL_METRICS_EXPORTER: "otlp",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: "authorization=Bearer%20key",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=desk,team=blue",
    };
    const requests = await exportedWith(env, async (api) => {
      await until("metrics are sent at the interval", async () => received.length > 1);
      for (let n = 0; n < 3; n++) await api.post("/runs/wait", RUN);
    });
    expect(
      requests.every(({ path, headers }) => path === "/otlp/v1/metrics" && headers.authorization === "Bearer key"),
    ).toBe(true);
    const [{ resource, scopeMetrics }] = JSON.parse(String(requests.at(-1)?.body)).resourceMetrics;
    expect(resource.attributes).toEqual([
      { key: "service.name", value: { stringValue: "desk" } },
      { key: "team", value: { stringValue: "blue" } },
    ]);
    // biome-ignore lint/suspicious/noExplicitAny: metrics of each kind
    const metrics = new Map<string, any>(
      scopeMetrics[0].metrics.map((metric: { name: string }) => [metric.name, metric]),
    );
    const [duration] = metrics.get("threadmill_run_duration_seconds").histogram.dataPoints;
    expect(duration.attributes).toEqual([{ key: "status", value: { stringValue: "success" } }]);
    expect(Number(duration.count)).toBe(3);
    expect(duration.sum).toBeGreaterThan(0);
    expect(duration.bucketCounts.length).toBe(duration.explicitBounds.length + 1);
    expect(duration.bucketCounts.reduce((sum: number, count: number) => sum + Number(count), 0)).toBe(3);
    expect(metrics.get("threadmill_run_duration_seconds").unit).toBe("s");
    expect(metrics.get("threadmill_graph_host_failures_total").sum).toMatchObject({
      isMonotonic: true,
      dataPoints: [{ asDouble: 0 }],
    });
    expect(
      metrics.get("threadmill_runs").gauge.dataPoints.map(({ asDouble }: { asDouble: number }) => asDouble),
    ).toEqual([0, 0]);
  });

  it("sends protobuf to the URL for metrics alone", async () => {
    const requests = await exportedWith({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${url}/here` }, async (api) =>
      api.post("/runs/wait", RUN),
    );
    const last = requests.at(-1);
    expect([last?.path, last?.headers["content-type"]]).toEqual(["/here", "application/x-protobuf"]);
    expect(String(last?.body)).toContain("threadmill_run_duration_seconds");
  });

  it.each<Record<string, string>>([
    {},
    { OTEL_METRICS_EXPORTER: "otlp", OTEL_SDK_DISABLED: "true" },
    { OTEL_METRICS_EXPORTER: "prometheus" },
  ])("sends nothing with an endpoint and %j", async (env) => {
    const requests = await exportedWith({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env }, async (api) =>
      api.post("/runs/wait", RUN),
    );
    expect(requests.filter(({ path }) => path?.includes("metrics"))).toEqual([]);
  });
});
