import { createHash } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../support/until.ts";
import { Instance, unreachable } from "./instance.ts";
import { ADMIN, ITSELF, ROOT, World } from "./world.ts";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Echoes text messages of less than 126 bytes, in the way of RFC 6455. */
const startEcho = (name = "echo") =>
  Instance.start(
    name,
    (_, response) => response.writeHead(426, { "content-type": "text/plain" }).end("upgrade, please"),
    (incoming, socket) => {
      const accept = createHash("sha1").update(`${incoming.headers["sec-websocket-key"]}${MAGIC}`).digest("base64");
      if (incoming.url?.startsWith("/refused")) return void socket.end("HTTP/1.1 403 Forbidden\r\nX-Why: me\r\n\r\nno");
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      socket.write(frameOf(`hello from ${name} at ${incoming.url}`));
      socket.on("error", () => undefined);
      socket.on("data", (data: Buffer) => {
        for (const { opcode, text } of messagesIn(data)) {
          if (opcode === 8) socket.end(Buffer.from([0x88, 0]));
          else if (text === "die") (socket as Socket).resetAndDestroy();
          else socket.write(frameOf(text));
        }
      });
    },
  );

/** Short frames of a client, which are masked. */
function* messagesIn(data: Buffer): Generator<{ opcode: number; text: string }> {
  for (let at = 0; at < data.length; ) {
    const length = data.readUInt8(at + 1) & 127;
    const mask = data.subarray(at + 2, at + 6);
    const text = data.subarray(at + 6, at + 6 + length).map((byte, i) => byte ^ (mask[i % 4] as number));
    yield { opcode: data.readUInt8(at) & 15, text: Buffer.from(text).toString() };
    at += 6 + length;
  }
}

const frameOf = (text: string) => Buffer.concat([Buffer.from([0x81, Buffer.byteLength(text)]), Buffer.from(text)]);

describe("a WebSocket", () => {
  let world: World;
  let open: World;
  let instance: Instance;
  beforeAll(async () => {
    world = await World.open("sqlite", { router_wait_ms: 100 });
    open = await World.open("sqlite", { api_keys: [], cors_origins: "https://app.example", router_wait_ms: 100 });
    instance = await startEcho();
  });
  afterAll(async () => {
    await Promise.all([world.close(), open.close()]);
    await instance.stop();
  });

  const inFlight = (of = world) => of.router.inFlight(instance.upstream.instance_id);

  /** Over Node's own client, which shows no key. */
  async function connect(url: string): Promise<{ socket: WebSocket; messages: string[] }> {
    const socket = new WebSocket(url);
    const messages: string[] = [];
    socket.addEventListener("message", ({ data }) => messages.push(String(data)));
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", reject);
    });
    return { socket, messages };
  }

  /** An upgrade by hand; its answer, and the connection if it was upgraded. */
  async function upgrade(path: string, headers: Record<string, string> = {}, of = world) {
    const sent = request({
      port: of.process.port,
      path,
      agent: false,
      headers: {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "MDEyMzQ1Njc4OWFiY2RlZg==",
        ...headers,
      },
    });
    sent.end();
    const [event, answer, socket] = await Promise.race([
      once(sent, "response").then(([got]) => ["response", got, undefined]),
      once(sent, "upgrade").then(([got, connection]) => ["upgrade", got, connection]),
    ]);
    if (event === "upgrade") return { status: answer.statusCode as number, socket: socket as Socket, text: "" };
    let text = "";
    for await (const chunk of answer) text += chunk;
    return { status: answer.statusCode as number, headers: answer.headers, text };
  }

  it("passes, in both directions, until one of the two ends it", async () => {
    const { path } = await open.deployed(instance.upstream);
    const { socket, messages } = await connect(`ws://127.0.0.1:${open.process.port}${path}/socket?x=1`);
    for (const text of ["one", "two", "three"]) socket.send(text);
    await until("all are echoed", async () => messages.length === 4);
    expect(messages).toEqual(["hello from echo at /socket?x=1", "one", "two", "three"]);
    expect(inFlight(open)).toBe(1);
    socket.close();
    await once(socket as never, "close");
    await until("it is not in flight any more", async () => inFlight(open) === 0);
  });

  it("shows the instance the instance's key, and who calls", async () => {
    const { path } = await world.deployed(instance.upstream);
    const { socket } = await upgrade(`${path}/socket`, { authorization: `Bearer ${ROOT}` });
    expect(instance.last.headers).toMatchObject({
      "x-api-key": instance.upstream.api_key,
      "x-threadmill-user": "admin",
      "x-forwarded-prefix": path,
      connection: "Upgrade",
      upgrade: "websocket",
    });
    expect(instance.last.headers).not.toHaveProperty("authorization");
    socket?.destroy();
    await until("the instance's side ends, too", async () => inFlight() === 0);
  });

  it("needs a key as everything does", async () => {
    const { path } = await world.deployed(instance.upstream);
    const before = instance.seen.length;
    for (const [at, headers, status] of [
      [path, {}, 401],
      [`${path}/ok/`, {}, 401],
      [path, { "x-api-key": "wrong" }, 401],
      [path, await world.key({ scopes: ["tokens"] }), 403],
      ["/deployments/nothing/x", ADMIN, 404],
      [`${path}/../x`, ADMIN, 422],
      [(await world.deployed()).path, ADMIN, 503],
    ] as const) {
      const answer = await upgrade(at, headers);
      expect([at, answer.status, typeof JSON.parse(answer.text).detail]).toEqual([at, status, "string"]);
      expect(answer.headers).toMatchObject({ "content-type": "application/json", connection: "close" });
    }
    expect(instance.seen.length).toBe(before);
  });

  it("from a page of an origin that is not listed is refused", async () => {
    const { path } = await open.deployed(instance.upstream);
    expect(await upgrade(path, { origin: "https://evil.example" }, open)).toMatchObject({
      status: 403,
      text: expect.stringContaining("CORS_ALLOW_ORIGINS"),
    });
    expect(await upgrade(path, { host: "evil.example" }, open)).toMatchObject({ status: 403 });
    const { status, socket } = await upgrade(path, { origin: "https://app.example" }, open);
    expect(status).toBe(101);
    socket?.destroy();
  });

  it("connects to another instance when one accepts no connection", async () => {
    const { path } = await world.deployed(unreachable(), unreachable(), instance.upstream);
    for (let n = 0; n < 3; n++) {
      const { status, socket } = await upgrade(`${path}/socket`, ADMIN);
      expect(status).toBe(101);
      socket?.destroy();
    }
  });

  it("that the instance refuses gets the response of the instance", async () => {
    const { path } = await world.deployed(instance.upstream);
    expect(await upgrade(`${path}/refused`, ADMIN)).toMatchObject({
      status: 403,
      headers: { "x-why": "me" },
      text: "no",
    });
    const plain = await Instance.start("plain");
    const { path: to } = await world.deployed(plain.upstream);
    expect(await upgrade(to, ADMIN)).toMatchObject({ status: 200, text: "plain" });
    await until("nothing is in flight", async () => inFlight() === 0);
    await plain.stop();
  });

  it("stays open during a switch, and new ones connect to the new instance", async () => {
    const { path, deployment_id } = await open.deployed(instance.upstream);
    const url = `ws://127.0.0.1:${open.process.port}${path}/socket`;
    const old = await connect(url);
    const next = await startEcho("next");
    open.router.activate(deployment_id, [next.upstream]);
    const fresh = await connect(url);
    await until("it is greeted", async () => fresh.messages.length === 1);
    expect(fresh.messages).toEqual(["hello from next at /socket"]);
    old.socket.send("still here");
    await until("the old one answers", async () => old.messages.includes("still here"));
    for (const { socket } of [old, fresh]) {
      socket.close();
      await once(socket as never, "close");
    }
    await next.stop();
  });

  it("breaks for the client when it breaks for the instance", async () => {
    const { path } = await open.deployed(instance.upstream);
    const { socket } = await connect(`ws://127.0.0.1:${open.process.port}${path}/socket`);
    const closed = once(socket as never, "close");
    socket.send("die");
    const [event] = (await closed) as [CloseEvent];
    expect(event.wasClean).toBe(false);
    await until("nothing is in flight", async () => inFlight(open) === 0);
  });

  it("loses no data that the client sends together with the request", async () => {
    const { path } = await world.deployed(instance.upstream);
    const frame = Buffer.concat([Buffer.from([0x81, 0x85, 0, 0, 0, 0]), Buffer.from("early")]).toString("latin1");
    const text = await world.process.raw(
      `GET ${path}/x HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${ROOT}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n${frame}`,
      (answer) => answer.includes("early"),
    );
    expect(text).toContain("early");
  });

  it("does not keep the service from stopping", async () => {
    const stopping = await World.open("sqlite", { api_keys: [] });
    const { path } = await stopping.deployed(instance.upstream);
    const { socket } = await connect(`ws://127.0.0.1:${stopping.process.port}${path}/socket`);
    const closed = once(socket as never, "close");
    await stopping.close();
    await closed;
  });

  it("is the only supported upgrade: other Upgrade headers are ignored", async () => {
    const plain = await Instance.start("plain");
    const { path } = await world.deployed(plain.upstream);
    const h2c = { ...ADMIN, connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "x" };
    const answer = await world.process.send(path, { method: "POST", headers: h2c, body: "text" });
    expect(answer.text).toBe("plain");
    expect(plain.last.headers).not.toHaveProperty("http2-settings");
    expect((await world.process.send("/x", { method: "POST", headers: h2c, body: "text" })).text).toBe(ITSELF);
    expect((await upgrade("/x", ADMIN)).text).toBe(ITSELF);
    await plain.stop();
  });
});
