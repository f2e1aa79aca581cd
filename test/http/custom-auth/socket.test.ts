import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { until } from "../../support/until.ts";
import { AUTH_CONFIG, Scenario, type Wire } from "../scenario.ts";

type Headers = Record<string, string>;
const alice: Headers = { authorization: "Bearer alice" };
const bob: Headers = { authorization: "Bearer bob" };

describe("a WebSocket of a user on a thread of another user", () => {
  let api: Scenario;
  let url: string;
  beforeAll(async () => {
    api = await Scenario.start("sqlite", {}, { config: AUTH_CONFIG });
    url = await api.service.listen();
  });
  afterAll(() => api.stop());

  /** A thread of alice that waits for an answer. */
  async function askingThread(metadata: object): Promise<{ thread_id: string; interrupt_id: string }> {
    const { thread_id } = await api.call("POST", "/threads", { metadata }, alice);
    await api.call("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "gate", input: { steps: [] } }, alice);
    const { tasks } = await api.call("GET", `/threads/${thread_id}/state`, undefined, alice);
    return { thread_id, interrupt_id: tasks[0].interrupts[0].id };
  }

  /** Sends commands one after another; a closed connection answers with the reason. */
  async function connect(thread_id: string, headers: Headers) {
    const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${thread_id}/stream/events`, { headers });
    const messages: Wire[] = [];
    let closed: number | undefined;
    socket.on("message", (data) => messages.push(JSON.parse(String(data))));
    socket.on("close", (code) => {
      closed = code;
    });
    await once(socket, "open");
    return {
      messages,
      close: () => socket.close(),
      async command(id: number, method: string, params: object): Promise<Wire> {
        socket.send(JSON.stringify({ id, method, params }));
        const response = () => messages.find((message) => message.id === id);
        await until(`the response to ${method}`, async () => response() !== undefined || closed !== undefined);
        return response() ?? { type: "error", closed };
      },
    };
  }

  const snapshot = (thread_id: string) =>
    Promise.all(
      ["", "/runs", "/state"].map((path) => api.call("GET", `/threads/${thread_id}${path}`, undefined, alice)),
    );

  const COMMANDS: [string, (interrupt_id: string) => object][] = [
    ["run.start", () => ({ assistant_id: "chain", input: { steps: ["of bob"] } })],
    ["run.start", () => ({ assistant_id: "gate", input: null })],
    ["input.respond", (interrupt_id) => ({ namespace: [], interrupt_id, response: "of bob" })],
    ["input.respond", (interrupt_id) => ({ responses: [{ interrupt_id, response: "of bob" }] })],
  ];

  it.each(COMMANDS)("cannot %s", async (method, params) => {
    const { thread_id, interrupt_id } = await askingThread({});
    const before = await snapshot(thread_id);
    const connection = await connect(thread_id, bob);
    expect(await connection.command(1, method, params(interrupt_id))).toMatchObject({ type: "error" });
    expect(JSON.stringify(connection.messages)).not.toContain("alice");
    expect(await snapshot(thread_id)).toEqual(before);
    connection.close();
  });

  it.each(COMMANDS)("cannot %s if the user may only read the thread", async (method, params) => {
    const { thread_id, interrupt_id } = await askingThread({ readers: ["bob"] });
    const before = await snapshot(thread_id);
    const connection = await connect(thread_id, bob);
    expect(await connection.command(1, "state.get", { namespace: [] })).toMatchObject({
      result: { values: { steps: ["open"] } },
    });
    expect(await connection.command(2, method, params(interrupt_id))).toMatchObject({ type: "error" });
    expect(await snapshot(thread_id)).toEqual(before);
    connection.close();
  });

  it("receives no events and no state", async () => {
    const { thread_id } = await askingThread({});
    const connection = await connect(thread_id, bob);
    const subscription = { channels: ["values", "lifecycle", "input"], since: 0 };
    expect(await connection.command(1, "subscription.subscribe", subscription)).toMatchObject({ type: "error" });
    const other = await connect(thread_id, bob);
    expect(await other.command(1, "state.get", { namespace: [] })).toMatchObject({ type: "error" });
    for (const { messages } of [connection, other]) expect(JSON.stringify(messages)).not.toContain("open");
  });

  it("executes the commands of the user to whom the thread belongs", async () => {
    const { thread_id, interrupt_id } = await askingThread({});
    const connection = await connect(thread_id, alice);
    const params = { namespace: [], interrupt_id, response: "Ada" };
    expect(await connection.command(1, "input.respond", params)).toMatchObject({ type: "success" });
    await until("the graph asks again", async () => {
      const { tasks, values } = await api.call("GET", `/threads/${thread_id}/state`, undefined, alice);
      return values.steps.length === 1 && tasks[0]?.interrupts[0]?.value.name === "Ada";
    });
    connection.close();
  });
});
