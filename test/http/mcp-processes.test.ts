import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startThreadmill, type Threadmill } from "../../src/main.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { parseSse } from "../support/sse.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

const HEADERS = { accept: "application/json, text/event-stream", "content-type": "application/json" };

describe.each(databases)("calls of MCP tools, with two services on one database (%s)", (database) => {
  let api: Scenario;
  let second: Threadmill;
  beforeAll(async () => {
    api = await Scenario.start(database);
    second = await startThreadmill(api.service.config, createLog("silent"));
  });
  afterAll(async () => {
    await second.stop();
    await api.stop();
  });

  async function post(target: Pick<Threadmill, "fetch">, body: object, headers: Record<string, string>) {
    const init = { method: "POST", headers: { ...HEADERS, ...headers }, body: JSON.stringify(body) };
    const response = await target.fetch(new Request("http://localhost/mcp", init));
    return { status: response.status, message: parseSse(await response.text()).at(-1)?.data as Wire };
  }

  it("are cancelled by a notification to the other service", async () => {
    const session = { "mcp-session-id": randomUUID() };
    const params = { name: "slow", arguments: { steps: [], door: null } };
    const call = { jsonrpc: "2.0", id: "one", method: "tools/call", params };
    const calling = post(api.service.threadmill, call, session);
    await until("it runs", async () => (await api.get("/app/api/runs?status=running")).runs.length === 1);
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "one" } };
    expect((await post(second, cancel, session)).status).toBe(202);
    expect((await calling).message.result.content[0].text).toBe("The run was cancelled.");
  });

  it("are cancelled by a notification that overtakes them", async () => {
    const session = { "mcp-session-id": randomUUID() };
    const params = { name: "slow", arguments: { steps: [], door: null } };
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    const cancelling = post(second, cancel, session);
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    const { message } = await post(api.service.threadmill, call, session);
    expect((await cancelling).status).toBe(202);
    expect(message.result.content[0].text).toBe("The run was cancelled.");
  });

  it("are continued by the other service after an interrupt", async () => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
    };
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "gate" };
    const params = { name: "gate", arguments: { steps: [] }, _meta };
    const call = (more: object) => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { ...params, ...more } });
    const paused = (await post(api.service.threadmill, call({}), headers)).message.result;
    const [id] = Object.keys(paused.inputRequests) as [string];
    const inputResponses = { [id]: { action: "accept", content: { answer: "Ada" } } };
    const next = await post(second, call({ requestState: paused.requestState, inputResponses }), headers);
    expect(Object.values(next.message.result.inputRequests)).toMatchObject([
      { params: { message: '{"question":"age?","name":"Ada"}' } },
    ]);
  });
});
