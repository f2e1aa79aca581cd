import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../support/until.ts";
import { Instance } from "./instance.ts";
import { ADMIN, readAll, World } from "./world.ts";

const EVENT = (n: number) => `event: values\ndata: ${n}\n\n`;

describe("through the router", () => {
  let world: World;
  const instances: Instance[] = [];
  beforeAll(async () => {
    world = await World.open();
  });
  afterAll(async () => {
    await world.close();
    for (const instance of instances) await instance.stop();
  });

  const instance = async (handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<Instance> => {
    const made = await Instance.start("instance", handler);
    instances.push(made);
    return made;
  };

  it("each event of a stream arrives before the next one is sent", async () => {
    let response: ServerResponse | undefined;
    const { path } = await world.deployed(
      (
        await instance((_, outgoing) => {
          response = outgoing;
          outgoing.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
        })
      ).upstream,
    );
    // The headers come with nothing behind them.
    const answer = await world.process.open(`${path}/runs/stream`, { headers: ADMIN });
    expect(answer.headers["content-type"]).toBe("text/event-stream");
    answer.setEncoding("utf8");
    for (let n = 0; n < 20; n++) {
      response?.write(EVENT(n));
      expect(await once(answer, "data")).toEqual([EVENT(n)]);
    }
    response?.end();
    await once(answer, "end");
    expect(answer.complete).toBe(true);
  });

  it("an idle connection is closed before the instance closes it; a connection in use may be idle for longer", async () => {
    const signal = new EventEmitter();
    const made = await instance((incoming, response) => {
      if (incoming.url === "/short") return void response.end("done");
      response.writeHead(200, { "content-type": "text/event-stream" }).write(EVENT(1));
      signal.once("continue", () => response.end(EVENT(2)));
    });
    const { path } = await world.deployed(made.upstream);
    const closed = new Promise<number>((resolve) => {
      made.server.once("connection", (socket: Socket) => {
        const opened = performance.now();
        socket.once("close", () => resolve(performance.now() - opened));
      });
    });
    // Both are used a second time.
    await Promise.all(["/short", "/short"].map((at) => world.process.send(path + at, { headers: ADMIN })));
    const stream = await world.process.open(`${path}/stream`, { headers: ADMIN });
    expect(made.connections).toBe(2);
    expect(await closed).toBeLessThan(4_900);
    signal.emit("continue");
    expect((await readAll(stream)).text).toBe(EVENT(1) + EVENT(2));
  });

  it("an answer keeps its status, its length and its encoding", async () => {
    const { path } = await world.deployed(
      (
        await instance((_, response) => {
          response.writeHead(418, "Short and stout", { "content-encoding": "gzip", "content-length": 3, etag: "x" });
          response.end("abc");
        })
      ).upstream,
    );
    const answer = await world.process.open(path, { headers: ADMIN });
    expect([answer.statusCode, answer.statusMessage]).toEqual([418, "Short and stout"]);
    expect(answer.headers).toMatchObject({ "content-encoding": "gzip", "content-length": "3", etag: "x" });
    expect(answer.headers["transfer-encoding"]).toBeUndefined();
  });

  it.each(["HEAD", "DELETE", "OPTIONS"])("%s has an answer without a body", async (method) => {
    const { path } = await world.deployed(
      (await instance((_, response) => response.writeHead(204, { "x-seen": "1" }).end())).upstream,
    );
    const answer = await world.process.send(`${path}/x`, { method, headers: ADMIN });
    expect(answer).toMatchObject({ status: 204, text: "", headers: { "x-seen": "1" } });
  });

  it("a client that disconnects closes the connection to the instance", async () => {
    let ended: Promise<unknown> | undefined;
    const made = await instance((_, response) => {
      ended = once(response, "close");
      response.writeHead(200, { "content-type": "text/event-stream" }).write(EVENT(1));
    });
    const { path } = await world.deployed(made.upstream);
    const answer = await world.process.open(path, { headers: ADMIN });
    await once(answer, "data");
    expect(world.router.inFlight(made.upstream.instance_id)).toBe(1);
    answer.destroy();
    await ended;
    await until("it is not in flight any more", async () => world.router.inFlight(made.upstream.instance_id) === 0);
  });

  it("a client that disconnects before the response closes it, too", async () => {
    let ended: Promise<unknown> | undefined;
    const made = await instance((_, response) => {
      ended = once(response, "close");
    });
    const { path } = await world.deployed(made.upstream);
    const sent = request({ port: world.process.port, path, headers: ADMIN, agent: false });
    sent.on("error", () => undefined).end();
    await made.next();
    sent.destroy();
    await ended;
    await until("it is not in flight any more", async () => world.router.inFlight(made.upstream.instance_id) === 0);
  });

  it.each([
    ["with a length", { "content-length": 100 }],
    ["in chunks", {}],
  ])("an answer %s that breaks off is recognizably incomplete", async (_, headers) => {
    const { path } = await world.deployed(
      (
        await instance((_request, response) => {
          response.writeHead(200, headers).write("begun");
          setImmediate(() => response.socket?.resetAndDestroy());
        })
      ).upstream,
    );
    const answer = await world.process.open(path, { headers: ADMIN });
    answer.on("error", () => undefined).resume();
    await new Promise((resolve) => answer.once("close", resolve));
    expect(answer.complete).toBe(false);
  });

  it("an upload is not buffered: of 200 MB, less than 20 MB are in flight", { timeout: 120_000 }, async () => {
    const size = 200_000_000;
    let taken = 0;
    const digests = [createHash("sha1"), createHash("sha1")] as const;
    const { path } = await world.deployed(
      (
        await instance(async (incoming, response) => {
          for await (const chunk of incoming) {
            digests[0].update(chunk);
            taken += chunk.length;
          }
          response.end();
        })
      ).upstream,
    );
    let max = 0;
    function* pieces() {
      const piece = Buffer.alloc(100_000, "upload");
      for (let given = 0; given < size; given += piece.length) {
        max = Math.max(max, given - taken);
        digests[1].update(piece);
        yield piece;
      }
    }
    const sent = request({ port: world.process.port, path, method: "POST", headers: ADMIN, agent: false });
    Readable.from(pieces(), { objectMode: false }).pipe(sent);
    await once(sent, "response");
    expect([taken, digests[0].digest("hex")]).toEqual([size, digests[1].digest("hex")]);
    expect(max).toBeLessThan(20_000_000);
  });

  it("an instance that does not read holds up an upload", async () => {
    const made = await instance(() => undefined);
    const { path } = await world.deployed(made.upstream);
    const sent = request({ port: world.process.port, path, method: "POST", headers: ADMIN, agent: false });
    sent.on("error", () => undefined);
    const piece = Buffer.alloc(1_000_000);
    let given = 0;
    for (let stalled = false; !stalled && given < 100_000_000; given += piece.length) {
      if (sent.write(piece)) continue;
      stalled = await Promise.race([once(sent, "drain").then(() => false), pause(500).then(() => true)]);
    }
    expect(given).toBeLessThan(40_000_000);
    sent.destroy();
    made.server.closeAllConnections();
    await until("it is not in flight any more", async () => world.router.inFlight(made.upstream.instance_id) === 0);
  });

  it("a slow reader slows its writer", async () => {
    let written = 0;
    const stalled = new EventEmitter();
    const { path } = await world.deployed(
      (
        await instance(async (_, response) => {
          const piece = Buffer.alloc(1_000_000);
          for (; written < 100_000_000; written += piece.length) {
            if (response.write(piece)) continue;
            const drained = await Promise.race([
              once(response, "drain").then(() => true),
              pause(500).then(() => false),
            ]);
            if (!drained) break;
          }
          stalled.emit("stalled");
        })
      ).upstream,
    );
    const isStalled = once(stalled, "stalled");
    const answer = await world.process.open(path, { headers: ADMIN });
    await isStalled;
    expect(written).toBeLessThan(40_000_000);
    answer.destroy();
  });

  it("an instance may answer before it has read everything", async () => {
    const { path } = await world.deployed(
      (await instance((_, response) => response.writeHead(413).end("too much"))).upstream,
    );
    const body = Buffer.alloc(5_000_000).toString("latin1");
    const answer = await world.process.send(path, { method: "POST", headers: ADMIN, body });
    expect([answer.status, answer.text]).toEqual([413, "too much"]);
  });
});
