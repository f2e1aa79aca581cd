import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Instance } from "./instance.ts";
import { ADMIN, ROOT, World } from "./world.ts";

/** What would be a request of its own if a server took it for one. */
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

describe("one request of a client is one request to the instance", () => {
  let world: World;
  let instance: Instance;
  let bodies: string[];
  let path: string;
  beforeAll(async () => {
    world = await World.open();
    bodies = [];
    instance = await Instance.start("mine", async (request, response) => {
      let body = "";
      for await (const chunk of request.setEncoding("latin1")) body += chunk;
      bodies.push(body);
      response.end("mine");
    });
    ({ path } = await world.deployed(instance.upstream));
  });
  afterAll(async () => {
    await world.close();
    await instance.stop();
  });

  /** Status lines of what comes back, and what the instance got. */
  async function raw(method: string, headers: string[], body = "") {
    const [seen, read] = [instance.seen.length, bodies.length];
    const head = [`${method} ${path}/x HTTP/1.1`, "Host: 127.0.0.1", `X-Api-Key: ${ROOT}`, ...headers];
    const text = await world.process.raw(`${head.join("\r\n")}\r\n\r\n${body}`);
    const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));
    return { statuses, seen: instance.seen.slice(seen).map(({ url }) => url), bodies: bodies.slice(read) };
  }

  it.each<[string, string[], string]>([
    ["a length and chunks", ["Content-Length: 4", "Transfer-Encoding: chunked"], `0\r\n\r\n${SMUGGLED}`],
    ["chunks and a length", ["Transfer-Encoding: chunked", "Content-Length: 4"], `0\r\n\r\n${SMUGGLED}`],
    ["two lengths", ["Content-Length: 0", `Content-Length: ${SMUGGLED.length}`], SMUGGLED],
    ["a list of lengths", [`Content-Length: 0, ${SMUGGLED.length}`], SMUGGLED],
    ["a signed length", ["Content-Length: +4"], "text"],
    ["a space before the colon", ["Content-Length : 4"], "text"],
    ["chunks that are not the last coding", ["Transfer-Encoding: chunked, identity"], `0\r\n\r\n${SMUGGLED}`],
    ["an unknown coding", ["Transfer-Encoding: xchunked"], `0\r\n\r\n${SMUGGLED}`],
    ["a folded header", ["X-Folded: a\r\n Transfer-Encoding: chunked"], ""],
    ["a bare newline", ["X-Bare: a\nTransfer-Encoding: chunked"], `0\r\n\r\n${SMUGGLED}`],
    ["a chunk size that is none", ["Transfer-Encoding: chunked"], `0x4\r\ntext\r\n0\r\n\r\n${SMUGGLED}`],
  ])("%s: refused", async (_, headers, body) => {
    for (const method of ["POST", "GET", "DELETE"]) {
      const got = await raw(method, [...headers, "Connection: close"], body);
      expect([method, got.statuses[0], got.seen]).toEqual([method, 400, []]);
    }
  });

  it("a transfer coding before chunked is not decoded, so it is refused", async () => {
    const headers = ["Transfer-Encoding: gzip, chunked", "Connection: close"];
    expect(await raw("POST", headers, "4\r\ntext\r\n0\r\n\r\n")).toMatchObject({ statuses: [422], seen: [] });
  });

  it.each(["GET", "POST", "DELETE", "OPTIONS", "PUT", "PATCH", "PURGE"])(
    "a body of %s has the same bounds on both sides, whatever the header Connection names",
    async (method) => {
      const chunked = ["Transfer-Encoding: chunked", "Connection: close, transfer-encoding, host, x-forwarded-for"];
      const chunks = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;
      const one = { statuses: [200], seen: ["/x"], bodies: [SMUGGLED] };
      expect(await raw(method, chunked, chunks)).toEqual(one);
      expect(instance.last.headers).toMatchObject({ "transfer-encoding": "chunked", "x-forwarded-for": "127.0.0.1" });
      expect(instance.last.headers).not.toHaveProperty("content-length");
      const length = [`Content-Length: ${SMUGGLED.length}`, "Connection: close, Content-Length, X-Api-Key"];
      expect(await raw(method, length, SMUGGLED)).toEqual(one);
      expect(instance.last.headers["content-length"]).toBe(String(SMUGGLED.length));
      expect(instance.last.headers["x-api-key"]).toBe(instance.upstream.api_key);
      expect(instance.last.headers).not.toHaveProperty("transfer-encoding");
    },
  );

  it("pipelined requests are answered in order", async () => {
    const head = (close: boolean) =>
      `GET ${path}/x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: ${ROOT}\r\n${close ? "Connection: close\r\n" : ""}\r\n`;
    const text = await world.process.raw(head(false) + head(false) + head(true));
    expect([...text.matchAll(/HTTP\/1\.1 200/g)]).toHaveLength(3);
  });

  it("hop-by-hop headers are not forwarded, in either direction", async () => {
    const odd = await Instance.start("odd", (_, response) => {
      response.writeHead(200, {
        connection: "close, x-internal",
        "keep-alive": "timeout=999",
        "proxy-authenticate": "Basic",
        upgrade: "h2c",
        "x-internal": "secret",
        "x-kept": "yes",
        trailer: "x-last",
      });
      response.write("text");
      response.addTrailers({ "x-last": "trailer" });
      response.end();
    });
    const { path: to } = await world.deployed(odd.upstream);
    const answer = await world.process.send(to, {
      headers: {
        ...ADMIN,
        connection: "close, X-Mine, keep-alive",
        "x-mine": "secret",
        "keep-alive": "timeout=5",
        te: "trailers",
        "proxy-authorization": "Basic abc",
        "proxy-connection": "keep-alive",
        upgrade: "h2c",
        "x-kept": "yes",
      },
    });
    expect(answer).toMatchObject({ status: 200, text: "text", headers: { "x-kept": "yes" } });
    for (const name of ["keep-alive", "proxy-authenticate", "upgrade", "x-internal", "trailer"])
      expect(answer.headers).not.toHaveProperty(name);
    expect(odd.last.headers).toMatchObject({ "x-kept": "yes", connection: "keep-alive" });
    for (const name of ["x-mine", "keep-alive", "te", "proxy-authorization", "proxy-connection", "upgrade", "expect"])
      expect(odd.last.headers).not.toHaveProperty(name);
    await odd.stop();
  });

  it("repeated headers are forwarded as often", async () => {
    const twice = await Instance.start("twice", (_, response) => {
      response.writeHead(200, ["Warning", "a", "Warning", "b", "Link", "<a>", "Link", "<b>"]).end();
    });
    const { path: to } = await world.deployed(twice.upstream);
    const answer = await world.process.open(to, { headers: { ...ADMIN, "x-many": ["a", "b"] } });
    expect(answer.headersDistinct.warning).toEqual(["a", "b"]);
    expect(answer.headersDistinct.link).toEqual(["<a>", "<b>"]);
    expect(twice.last.rawHeaders.filter((_, i, all) => all[i - 1] === "x-many")).toEqual(["a", "b"]);
    await twice.stop();
  });

  it("the router sets the headers about the origin of the request, and appends the client to X-Forwarded-For", async () => {
    await world.process.send(path, {
      headers: {
        ...ADMIN,
        "x-forwarded-for": "10.0.0.1",
        "x-forwarded-host": "evil.example",
        "x-forwarded-proto": "https",
        "x-forwarded-prefix": "/evil",
        "x-forwarded-port": "1",
        forwarded: "for=evil",
      },
    });
    expect(instance.last.headers).toMatchObject({
      "x-forwarded-for": "10.0.0.1, 127.0.0.1",
      "x-forwarded-host": `127.0.0.1:${world.process.port}`,
      "x-forwarded-proto": "http",
      "x-forwarded-prefix": path,
    });
    expect(instance.last.headers).not.toHaveProperty("forwarded");
    expect(instance.last.headers).not.toHaveProperty("x-forwarded-port");
  });

  it("the router answers Expect: 100-continue itself", async () => {
    const got = await raw("POST", ["Expect: 100-continue", "Content-Length: 4", "Connection: close"], "text");
    expect(got).toEqual({ statuses: [100, 200], seen: ["/x"], bodies: ["text"] });
    expect(instance.last.headers).not.toHaveProperty("expect");
  });

  it.each([
    ["contradicting lengths", "200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502],
    ["a status below 100", "000 X\r\nContent-Length: 0\r\n\r\n", 502],
    ["a control character in the reason phrase", "200 O\u0001K\r\nContent-Length: 0\r\n\r\n", 200],
  ])("a response with %s does not end the service", async (instance_id, answer, status) => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.write(`HTTP/1.1 ${answer}`));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { path: to } = await world.deployed({ instance_id, address: `http://127.0.0.1:${port}`, api_key: "key" });
    expect((await world.process.send(to, { method: "POST", headers: ADMIN })).status).toBe(status);
    server.close();
  });
});
