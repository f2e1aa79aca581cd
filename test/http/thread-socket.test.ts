import { once } from "node:events";
import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newKey } from "./callers.ts";
import { Scenario, type Wire } from "./scenario.ts";

/** A WebSocket of a thread, with all messages that the service has sent. */
class Connection {
  readonly socket: WebSocket;
  readonly messages: Wire[] = [];
  readonly closed: Promise<[code: number]>;

  constructor(url: string, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(url.replace("http", "ws"), { headers });
    this.socket.on("message", (data) => this.messages.push(JSON.parse(String(data))));
    this.closed = once(this.socket, "close") as Promise<[code: number]>;
  }

  opened = () => once(this.socket, "open");

  async command(id: number, method: string, params: object = {}): Promise<Wire> {
    this.socket.send(JSON.stringify({ id, method, params }));
    return this.until(`the response to ${method}`, (message) => message.id === id);
  }

  async until(what: string, fits: (message: Wire) => boolean): Promise<Wire> {
    await until(what, async () => this.messages.some(fits));
    return this.messages.find(fits);
  }

  rootEvents = () =>
    this.messages
      .filter(({ method, params }) => method === "lifecycle" && params.namespace.length === 0)
      .map(({ params }) => params.data.event);
}

describe("the WebSocket of a thread", () => {
  let api: Scenario;
  let url: string;
  beforeAll(async () => {
    api = await Scenario.start("sqlite");
    url = await api.service.listen();
  });
  afterAll(() => api.stop());

  async function open(thread_id: string, headers?: Record<string, string>): Promise<Connection> {
    const connection = new Connection(`${url}/threads/${thread_id}/stream/events`, headers);
    await connection.opened();
    return connection;
  }

  it("executes commands and streams the events of its subscriptions", async () => {
    const connection = await open(crypto.randomUUID());
    const { result } = await connection.command(1, "subscription.subscribe", { channels: ["lifecycle", "values"] });
    const started = await connection.command(2, "run.start", { assistant_id: "chain", input: { steps: ["in"] } });
    expect(started).toMatchObject({ type: "success", result: { run_id: expect.any(String) } });
    await connection.until("the end of the run", () => connection.rootEvents().includes("completed"));
    expect(connection.rootEvents()).toEqual(["running", "completed"]);

    const { subscription_id } = result;
    expect(await connection.command(3, "subscription.unsubscribe", { subscription_id })).toMatchObject({ result: {} });
    expect(await connection.command(4, "subscription.unsubscribe", { subscription_id })).toMatchObject({
      error: "no_such_subscription",
    });
    // The response comes before the events that it repeats.
    const count = connection.messages.length;
    await connection.command(5, "subscription.subscribe", { channels: ["lifecycle"], since: 0 });
    await connection.until("the repeated events", () => connection.rootEvents().length === 4);
    expect(connection.messages[count]).toMatchObject({ id: 5, type: "success" });
    connection.socket.close();
  });

  it("sends the events of several subscriptions once and in order, however slowly the client reads", async () => {
    const thread_id = await api.newThread();
    const connection = await open(thread_id);
    await connection.command(1, "subscription.subscribe", { channels: ["lifecycle"] });
    await connection.command(2, "subscription.subscribe", { channels: ["lifecycle", "custom"] });
    connection.socket.pause();
    // 20 MB: more than the buffers of the connection hold.
    const input = { lengths: Array(200).fill(100_000) };
    const { result } = await api.post(`/threads/${thread_id}/commands`, {
      id: 1,
      method: "run.start",
      params: { assistant_id: "flood", input },
    });
    await api.join({ thread_id, run_id: result.run_id });
    connection.socket.resume();
    await connection.until("the end of the run", () => connection.rootEvents().includes("completed"));
    const events = connection.messages.filter(({ type }) => type === "event");
    const seqs = events.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
    expect(new Set(seqs).size).toBe(seqs.length);
    expect(events.filter(({ method }) => method === "custom")).toHaveLength(200);
    connection.socket.close();
  });

  it("gives a new subscription the events from its position on, and the other one each event once", async () => {
    const thread_id = await api.newThread();
    const connection = await open(thread_id);
    const run = { assistant_id: "chain", input: { steps: ["in"] } };
    await connection.command(1, "subscription.subscribe", { channels: ["lifecycle"] });
    await connection.command(2, "run.start", run);
    await connection.until("the end of the run", () => connection.rootEvents().includes("completed"));
    const before = connection.messages.length;
    await connection.command(3, "subscription.subscribe", { channels: ["updates"], since: 0 });
    await connection.command(4, "run.start", run);
    const updates = () => connection.messages.slice(before).filter(({ method }) => method === "updates");
    await connection.until("the updates of both runs", () => updates().length === 6);
    await connection.until("the end of the second run", () => connection.rootEvents().length === 4);
    expect(connection.rootEvents()).toEqual(["running", "completed", "running", "completed"]);
    expect(updates().map(({ params }) => params.data.node)).toEqual(["a", "b", "c", "a", "b", "c"]);
    connection.socket.close();
  });

  it("gives several subscriptions that arrive together the events from their position on", async () => {
    const thread_id = await api.newThread();
    const connection = await open(thread_id);
    await connection.command(1, "subscription.subscribe", { channels: ["lifecycle"] });
    await connection.command(2, "run.start", { assistant_id: "chain", input: { steps: ["in"] } });
    await connection.until("the end of the run", () => connection.rootEvents().includes("completed"));
    for (const [id, channel] of [
      [3, "updates"],
      [4, "values"],
    ] as const)
      connection.socket.send(
        JSON.stringify({ id, method: "subscription.subscribe", params: { channels: [channel], since: 0 } }),
      );
    await connection.until(
      "the last values",
      ({ method, params }) => method === "values" && params.data.steps.length === 4,
    );
    expect(connection.messages.filter(({ method }) => method === "updates")).toHaveLength(3);
    expect(connection.rootEvents()).toEqual(["running", "completed"]);
    connection.socket.close();
  });

  it("sends the events of a delayed run that starts after later runs, also to subscriptions that begin there", async () => {
    const thread_id = await api.newThread();
    const delayed = await api.newRun(thread_id, { assistant_id: "chain", input: { steps: [] }, after_seconds: 5 });
    await api.join(await api.newRun(thread_id, { assistant_id: "chain", input: { steps: [] } }));
    const subscription = (since: number) => ({ channels: ["lifecycle"], since });
    const first = await open(thread_id);
    await first.command(1, "subscription.subscribe", subscription(0));
    await until("the end of the later run", async () => first.rootEvents().includes("completed"));
    const last = Math.max(...first.messages.map(({ seq = 0 }) => seq));
    const second = await open(thread_id);
    await second.command(1, "subscription.subscribe", subscription(last));
    await second.command(2, "subscription.subscribe", subscription(last));
    await api.join(delayed);
    for (const { rootEvents } of [first, second])
      await until(
        "the end of the delayed run",
        async () => rootEvents().at(-1) === "completed" && rootEvents().length > 1,
      );
    expect([first.rootEvents(), second.rootEvents()]).toEqual([
      ["running", "completed", "running", "completed"],
      ["running", "completed"],
    ]);
    first.socket.close();
    second.socket.close();
  });

  it("answers a message that is not a command with an error, and stays open", async () => {
    const connection = await open(await api.newThread());
    for (const text of ["{", "[]", '{"id":"1","method":"run.start"}', `${"[".repeat(200)}${"]".repeat(200)}`]) {
      const count = connection.messages.length;
      connection.socket.send(text);
      await until("an error", async () => connection.messages.length > count);
      expect(connection.messages.at(-1)).toMatchObject({ type: "error", id: null, error: "invalid_argument" });
    }
    expect(await connection.command(1, "run.stop")).toMatchObject({ error: "unknown_command" });
    expect(await connection.command(2, "subscription.subscribe", {})).toMatchObject({ error: "invalid_argument" });
    expect(await connection.command(3, "state.get", { namespace: [] })).toMatchObject({ type: "success" });
    connection.socket.close();
  });

  it("closes with the status of an error: a thread that is deleted", async () => {
    const thread_id = await api.newThread();
    const connection = await open(thread_id);
    await connection.command(1, "subscription.subscribe", { channels: ["values"] });
    await api.call("DELETE", `/threads/${thread_id}`);
    expect(await connection.closed).toEqual([4404, expect.anything()]);
  });

  it("refuses pages of other origins, other paths and requests without a WebSocket", async () => {
    const refusal = async (path: string, headers: Record<string, string> = {}) => {
      const socket = new WebSocket(`${url.replace("http", "ws")}${path}`, { headers });
      const [error] = await once(socket, "error");
      return (error as Error).message;
    };
    const path = `/threads/${crypto.randomUUID()}/stream/events`;
    expect(await refusal(path, { origin: "https://evil.invalid" })).toMatch("403");
    expect(await refusal("/threads/none/stream/events")).toMatch("422");
    expect((await fetch(`${url}${path}`)).status).toBe(426);
  });

  it("refuses a request that is no valid URL or has another method", async () => {
    const path = `/threads/${crypto.randomUUID()}/stream/events`;
    const refusal = async (options: RequestOptions) => {
      const headers = { connection: "Upgrade", upgrade: "websocket", ...options.headers };
      const [response] = await once(request(url, { path, ...options, headers }).end(), "response");
      return (response as IncomingMessage).statusCode;
    };
    expect(await refusal({ headers: { host: "[" } })).toBe(400);
    expect(await refusal({ path: `//[${path}` })).toBe(400);
    expect(await refusal({ method: "TRACE" })).toBe(400);
    // A client that reads the response and does not close its side.
    const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
    socket.write(
      "GET /threads/x/stream/events HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    socket.resume();
    await once(socket, "end");
    // Fails once the service has closed the connection.
    const written = setInterval(() => socket.write("x"), 20);
    await once(socket, "error");
    clearInterval(written);
    expect((await fetch(`${url}/ok`)).status).toBe(200);
  });

  it("needs a key when the service has keys, and ends with the key", async () => {
    const closed = await closedService("sqlite");
    const at = `${await closed.service.listen()}/threads/${crypto.randomUUID()}/stream/events`;
    const [error] = await once(new WebSocket(at.replace("http", "ws")), "error");
    expect((error as Error).message).toMatch("401");
    const { id, key } = await newKey(closed);
    const connection = new Connection(at, { "x-api-key": key });
    await connection.opened();
    await connection.command(1, "subscription.subscribe", { channels: ["values"] });
    await closed.call("DELETE", `/admin/keys/${id}`, undefined, ADMIN);
    expect(await connection.closed).toEqual([4401, expect.anything()]);
    expect(connection.messages.at(-1)).toMatchObject({ id: null, error: "permission_denied" });
    await closed.stop();
  });

  it("waits for the pongs of a slow client, and is closed for one that sends none", async () => {
    const slow = await Scenario.start("sqlite", {}, { intervals: { sse_heartbeat_ms: 50 } });
    const at = `${await slow.service.listen()}/threads/${crypto.randomUUID()}/stream/events`;
    const socket = new WebSocket(at.replace("http", "ws"), { autoPong: false });
    const closed = once(socket, "close");
    let pings = 0;
    socket.on("ping", () => {
      pings += 1;
      if (pings % 3 === 0 && pings <= 9) socket.pong();
    });
    expect(await closed).toEqual([1006, expect.anything()]);
    expect(pings).toBeGreaterThan(9);
    await slow.stop();
  });

  it("is closed for a restart when the service stops", async () => {
    const other = await Scenario.start("sqlite");
    const at = `${await other.service.listen()}/threads/${crypto.randomUUID()}/stream/events`;
    const connection = new Connection(at);
    await connection.opened();
    await connection.command(1, "subscription.subscribe", { channels: ["values"] });
    await other.stop();
    const [code] = await connection.closed;
    expect([1006, 1012]).toContain(code);
  });
});
