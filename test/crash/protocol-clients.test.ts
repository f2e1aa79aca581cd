import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { HttpAgent } from "@ag-ui/client";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { v7 } from "uuid";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Wire } from "../http/scenario.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";

describe.each(databases)("a kill while an official client reads a stream on %s", (name) => {
  let database: TestDatabase;
  let server: ServerProcess;
  let port: number;
  beforeEach(async () => {
    database = await createDatabase(name);
    port = await freePort();
    await start();
  });
  afterEach(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await database.drop();
  });

  async function start(): Promise<void> {
    const { data_dir: data, url: databaseUrl } = database;
    // One of the graphs cannot be loaded.
    const config = "test/graphs/scenarios/langgraph.json";
    server = await startProcess({ command: "dev", data, databaseUrl, port, config });
  }
  const runs = async (): Promise<Wire[]> =>
    ((await (await fetch(`http://127.0.0.1:${port}/app/api/runs`)).json()) as Wire).runs;

  /** Kills the service once the run executes, starts it again, and lets the run end. */
  async function killAndRestart(door: string): Promise<Wire> {
    await until("the run executes", async () => (await runs())[0]?.status === "running");
    server.child.kill("SIGKILL");
    await server.ended;
    await start();
    writeFileSync(door, "");
    return until("the run has ended", async () => (await runs()).find(({ status }) => status === "success"));
  }

  it("loses no run of an MCP client, and the client continues", async () => {
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));
    const door = join(database.data_dir, "door");
    const call = client.callTool({ name: "slow", arguments: { steps: [], door } }, { timeout: 5_000 });
    const failed = expect(call).rejects.toThrow();
    await killAndRestart(door);
    await failed;
    const { structuredContent } = await client.callTool({ name: "chain", arguments: { steps: [] } });
    expect(structuredContent).toEqual({ steps: ["a", "b", "c"] });
    await client.close();
  });

  it("loses no run of an AG-UI client, whose next request receives the state of both", async () => {
    const door = join(database.data_dir, "door");
    const threadId = v7();
    const agent = new HttpAgent({ url: `http://127.0.0.1:${port}/ag-ui/slow`, threadId, initialState: { door } });
    const reads = Promise.withResolvers<void>();
    const failed = expect(agent.runAgent({}, { onRunStartedEvent: () => reads.resolve() })).rejects.toThrow();
    await reads.promise;
    // The client also rejects a promise that only it knows, when it cancels the reader of the broken response.
    const others = process.rawListeners("unhandledRejection") as NodeJS.UnhandledRejectionListener[];
    const unhandled: unknown[] = [];
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", (error) => unhandled.push(error));
    await killAndRestart(door);
    await failed;
    process.removeAllListeners("unhandledRejection");
    for (const listener of others) process.on("unhandledRejection", listener);
    expect(unhandled.map(String)).toEqual(["TypeError: terminated"]);
    await agent.runAgent();
    expect(agent.state).toEqual({ steps: ["begin", "end", "begin", "end"], door });
    expect((await runs()).map(({ status }) => status)).toEqual(["success", "success"]);
  });
});
