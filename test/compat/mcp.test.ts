import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADMIN, closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario, Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";

const ERAS = [
  ["2025-11-25", { versionNegotiation: { mode: "legacy" } }],
  ["2026-07-28", { versionNegotiation: { mode: { pin: "2026-07-28" } } }],
] as const satisfies [string, ClientOptions][];
const STATELESS = ERAS[1][1];

describe.each(databases)("the official MCP client against %s", (database) => {
  let api: Scenario;
  const opened: Client[] = [];
  beforeAll(async () => {
    api = await closedService(database, { THREADMILL_DISCONNECT_GRACE: "50ms" });
    await api.service.listen();
  });
  afterAll(async () => {
    for (const client of opened) await client.close();
    await api.stop();
  });

  async function connected(options: ClientOptions, headers: Record<string, string> = ADMIN): Promise<Client> {
    const client = new Client({ name: "test", version: "1" }, options);
    const url = new URL("/mcp", await api.service.listen());
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    opened.push(client);
    return client;
  }

  const call = (method: "GET" | "POST", path: string, body?: unknown): Promise<Wire> =>
    api.call(method, path, body, ADMIN);
  const runsOf = async (query: string): Promise<Wire[]> => (await call("GET", `/app/api/runs?${query}`)).runs;

  describe.each(ERAS)("of %s", (version, options) => {
    it("lists the assistants with their descriptions and input schemas", async () => {
      const client = await connected(options);
      expect(client.getNegotiatedProtocolVersion()).toBe(version);
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["agent", "chain", "gate", "zod"]));
      expect(tools.map(({ name }) => name)).not.toContain("broken");
      expect(tools.find(({ name }) => name === "agent")).toMatchObject({
        description: "Three steps, one after the other.",
        inputSchema: { type: "object", properties: { steps: expect.anything() } },
      });
    });

    it("gets the final state of a run as text and as an object", async () => {
      const client = await connected(options);
      const result = await client.callTool({ name: "chain", arguments: { steps: ["in"] } });
      expect(result.structuredContent).toEqual({ steps: ["in", "a", "b", "c"] });
      expect(result.content).toEqual([{ type: "text", text: JSON.stringify(result.structuredContent) }]);
      expect(result.isError ?? false).toBe(false);
    });

    it("gets progress while the run executes", async () => {
      const client = await connected(options);
      const door = api.newDoor();
      const seen: Wire[] = [];
      const result = await client.callTool(
        { name: "slow", arguments: { steps: [], door: door.path } },
        {
          onprogress(progress) {
            seen.push(progress);
            door.open();
          },
        },
      );
      expect(result.structuredContent).toMatchObject({ steps: ["begin", "end"] });
      expect(seen[0].message).toBe("begin");
      const positions = seen.map(({ progress }) => progress);
      expect(positions).toEqual([...new Set(positions)].sort((a, b) => a - b));
    });

    it("cancels the run of a call", async () => {
      const client = await connected(options);
      const abort = new AbortController();
      const result = client.callTool({ name: "slow", arguments: { steps: [], door: null } }, { signal: abort.signal });
      const { run_id } = await until("it runs", async () => (await runsOf("status=running"))[0]);
      abort.abort("no longer needed");
      await expect(result).rejects.toThrow();
      await until("it is cancelled", async () => (await runsOf(`run_id=${run_id}`))[0].status === "interrupted");
    });

    it("gets the error of a run as a result", async () => {
      const client = await connected(options);
      const result = await client.callTool({ name: "fails", arguments: { steps: [], kind: "own_class" } });
      expect(result).toMatchObject({
        isError: true,
        content: [{ type: "text", text: "PaymentError: card refused" }],
      });
    });

    it("gets errors for unknown tools and for a graph that cannot be loaded", async () => {
      const client = await connected(options);
      await expect(client.callTool({ name: "nobody" })).rejects.toMatchObject({
        code: -32602,
        message: expect.stringContaining("Unknown tool: nobody"),
      });
      const broken = await client.callTool({ name: "broken", arguments: {} });
      expect(broken).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("could not be loaded") }],
      });
    });

    it("gets a paused run with the way to continue it, if it cannot ask its user", async () => {
      const client = await connected(options);
      const result = (await client.callTool({ name: "gate", arguments: { steps: [] } })) as Wire;
      expect(result.structuredContent.__interrupt__).toMatchObject([{ value: { question: "name?" } }]);
      const { thread_id } = result._meta;
      expect(result.content[1].text).toContain(`POST /threads/${thread_id}/runs/wait`);
      const resume = (value: unknown) =>
        call("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "gate", command: { resume: value } });
      await resume("Ada");
      expect((await resume(36)).answers).toEqual({ name: "Ada", age: 36 });
    });
  });

  describe("an assistant of a workspace", () => {
    it("is a tool only for its own workspace", async () => {
      const [mine, other] = await Promise.all(
        [1, 2].map(async () => newCaller(api, { tenant_id: await newWorkspace(api) })),
      );
      const names = ["Refund desk", "Refund desk", "chain"];
      for (const name of names) await api.call("POST", "/assistants", { graph_id: "chain", name }, mine);
      const listed = async (headers: Record<string, string> | undefined) =>
        (await (await connected(STATELESS, headers)).listTools()).tools.map(({ name }) => name);
      const ours = (await listed(mine)).filter((name) => /^(Refund|chain_)/.test(name));
      expect(ours).toEqual([
        "Refund_desk",
        expect.stringMatching(/^Refund_desk_[\da-f]{12}$/),
        expect.stringMatching(/^chain_/),
      ]);
      expect((await listed(other)).filter((name) => /^(Refund|chain_)/.test(name))).toEqual([]);
      const [name] = ours as [string];
      const input = { name, arguments: { steps: [] } };
      const result = await (await connected(STATELESS, mine)).callTool(input);
      expect(result.structuredContent).toEqual({ steps: ["a", "b", "c"] });
      await expect((await connected(STATELESS, other)).callTool(input)).rejects.toThrow("Unknown tool");
    });
  });

  describe("a client that can ask its user", () => {
    const asking = async (answers: (unknown | "decline")[], headers?: Record<string, string>) => {
      const client = await connected({ ...STATELESS, capabilities: { elicitation: { form: {} } } }, headers);
      const questions: string[] = [];
      client.setRequestHandler("elicitation/create", async ({ params }) => {
        questions.push(params.message);
        const answer = answers.shift();
        return answer === "decline"
          ? { action: "decline" as const }
          : { action: "accept" as const, content: { answer: answer as string } };
      });
      return { client, questions };
    };

    it("answers the interrupts of a run, one after the other", async () => {
      const { client, questions } = await asking(["Ada", "36"]);
      const result = await client.callTool({ name: "gate", arguments: { steps: [] } });
      expect(questions).toEqual(['{"question":"name?"}', '{"question":"age?","name":"Ada"}']);
      expect(result.structuredContent).toMatchObject({ answers: { name: "Ada", age: 36 } });
    });

    it("answers interrupts of parallel nodes", async () => {
      const { client, questions } = await asking(["one", "two"]);
      const result = await client.callTool({ name: "parallel", arguments: { steps: [] } });
      expect(questions.sort()).toEqual(['{"question":"left"}', '{"question":"right"}']);
      expect(Object.keys((result.structuredContent as Wire).answers).sort()).toEqual(["left", "right"]);
    });

    it("can decline, and the run stays paused", async () => {
      const { client } = await asking(["decline"]);
      const result = (await client.callTool({ name: "gate", arguments: { steps: [] } })) as Wire;
      expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("declined") }] });
      const [, thread_id] = /thread ([\da-f-]{36})/.exec(result.content[0].text) as RegExpExecArray;
      expect((await call("GET", `/threads/${thread_id}`)).status).toBe("interrupted");
    });
  });
});
