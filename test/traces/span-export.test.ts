import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { Scenario, type Wire } from "../http/scenario.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { run, TraceClient } from "./trace-client.ts";

const CONFIG = "test/graphs/traced/langgraph.json";
const ASK = { assistant_id: "agent", input: { messages: [{ type: "human", content: "when?" }] } };

/** The id that the ingestion of OTLP computes for the span of a run. */
const exportedId = (run_id: string) => `00000000-0000-0000-${run_id.slice(19)}`;

describe("the export of traces", () => {
  /** A second service, which stores what it receives at /otel. */
  let backend: TestService;
  let received: TraceClient;
  let url: string;
  beforeAll(async () => {
    backend = await startService({ database: "sqlite", config: "examples/langgraph.json" });
    received = new TraceClient(backend);
    url = await backend.listen();
  });
  afterAll(() => backend.stop());

  async function withService(env: Record<string, string>, use: (api: Scenario) => Promise<void>): Promise<void> {
    const api = await Scenario.start("sqlite", env, { config: CONFIG, tracing: true });
    await use(api).finally(() => api.stop());
  }
  const runAgent = async (api: Scenario): Promise<string> => {
    const created = await api.newRun(await api.newThread(), ASK);
    await api.join(created);
    return created.run_id;
  };
  const read = (id: string): Promise<Wire> =>
    until("the span is exported", async () => {
      const { status, body } = await received.get(`/runs/${id}`);
      return status === 200 && body;
    });

  it("sends the tree of a run with its types and metadata, and without its content", async () => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/otel`, OTEL_SERVICE_NAME: "shop" };
    await withService(env, async (api) => {
      const run_id = await runAgent(api);
      const root = await read(exportedId(run_id));
      expect(root).toMatchObject({
        name: "agent",
        run_type: "chain",
        status: "success",
        parent_run_id: null,
        inputs: {},
        outputs: null,
        extra: { metadata: { graph_id: "agent", run_id } },
        session_id: (await received.session("shop")).id,
      });
      const { child_run_ids } = await new TraceClient(api.service).read(run_id);
      const children = await Promise.all(child_run_ids.map((id: string) => read(exportedId(id))));
      const types = children.map(({ name, run_type }) => [name, run_type]).sort();
      expect(types).toEqual([
        ["FakeListChatModel", "llm"],
        ["answer", "chain"],
        ["search", "tool"],
      ]);
      const answer = children.find(({ name }) => name === "answer");
      expect(children.find(({ name }) => name === "search").parent_run_id).toBe(answer.id);
      expect(JSON.stringify([root, children])).not.toContain("tides");
    });
  });

  it("sends content and the runs of clients on request, as part of the trace of OpenTelemetry", async () => {
    const env = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/otel/v1/traces`,
      OTEL_EXPORTER_OTLP_HEADERS: "langsmith-project=by%20header",
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
      THREADMILL_OTLP_EXPORT: "all",
    };
    await withService(env, async (api) => {
      const traces = new TraceClient(api.service);
      const sent = run({ name: "by a client", run_type: "llm", error: "refused" });
      await traces.post(sent);
      expect(await read(exportedId(sent.id))).toMatchObject({
        name: "by a client",
        inputs: { question: "?" },
        outputs: { answer: "!" },
        error: "refused",
        session_id: (await received.session("by header")).id,
      });
      const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
      const thread_id = await api.newThread();
      const created = await api.call("POST", `/threads/${thread_id}/runs`, ASK, { traceparent });
      await api.join(created);
      expect(await read(exportedId(created.run_id))).toMatchObject({
        parent_run_id: "00000000-0000-0000-b7ad-6b7169203331",
      });
    });
  });

  it("sends JSON with the protocol http/json, with the attributes of the resource", async () => {
    const types = new Set<string | undefined>();
    const bodies: Buffer[] = [];
    // Records the requests, and passes them on to the backend.
    const proxy = createServer((incoming, response) => {
      types.add(incoming.headers["content-type"]);
      const outgoing = request(`${url}/otel/v1/traces`, { method: "POST", headers: incoming.headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      incoming.on("data", (chunk) => bodies.push(chunk));
      incoming.pipe(outgoing);
    });
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    const { port } = proxy.address() as AddressInfo;
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=desk,team=blue%20one",
    };
    await withService(env, async (api) => {
      const run_id = await runAgent(api);
      expect(await read(exportedId(run_id))).toMatchObject({
        name: "agent",
        status: "success",
        extra: { metadata: { run_id } },
      });
    });
    proxy.close();
    expect([...types]).toEqual(["application/json"]);
    const text = Buffer.concat(bodies).toString();
    for (const [key, stringValue] of Object.entries({ "service.name": "desk", team: "blue one" }))
      expect(text).toContain(JSON.stringify({ key, value: { stringValue } }));
  });

  it.each<Record<string, string>>([{ OTEL_SDK_DISABLED: "true" }, { OTEL_TRACES_EXPORTER: "none" }])(
    "sends nothing with %j",
    async (off) => {
      let run_id = "";
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/otel`, ...off };
      await withService(env, async (api) => {
        run_id = await runAgent(api);
        await until(
          "the trace is stored",
          async () => (await new TraceClient(api.service).read(run_id))?.status === "success",
        );
      });
      // The service sends the waiting spans before it stops.
      expect((await received.get(`/runs/${exportedId(run_id)}`)).status).toBe(404);
    },
  );

  it("is refused for other protocols, with the reason in the log", async () => {
    const lines: object[] = [];
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
    const warn = (fields: object) => lines.push(fields);
    const log = Object.assign(createLog("silent"), { warn }) as unknown as Log;
    const api = await Scenario.start("sqlite", env, { config: CONFIG, log });
    await api.stop();
    expect(lines).toContainEqual({
      endpoint: url,
      reason: "the protocol grpc is not supported: use http/protobuf or http/json",
    });
  });

  it("is never to the service itself, and does not affect runs when the backend fails", async () => {
    const itself = { OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/otel`, THREADMILL_PUBLIC_URL: url };
    let run_id = "";
    await withService(itself, async (api) => {
      run_id = await runAgent(api);
      await until(
        "the trace is stored",
        async () => (await new TraceClient(api.service).read(run_id))?.status === "success",
      );
    });
    // The service sends the waiting spans before it stops.
    expect((await received.get(`/runs/${exportedId(run_id)}`)).status).toBe(404);
    await withService({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" }, async (api) => {
      const run_id = await runAgent(api);
      await until(
        "the trace is stored",
        async () => (await new TraceClient(api.service).read(run_id))?.status === "success",
      );
    });
  });
});
