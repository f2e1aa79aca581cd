import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Upstream } from "../../../src/control-plane/router/router.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { until } from "../../support/until.ts";
import { Instance, unreachable } from "./instance.ts";
import { ADMIN, World } from "./world.ts";

/** Takes a request and dies of it; `seen` counts them. */
async function startFragile(): Promise<Upstream & { seen(): number; stop(): void }> {
  let seen = 0;
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      seen += 1;
      socket.resetAndDestroy();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    instance_id: newId(),
    address: `http://127.0.0.1:${port}`,
    api_key: "key",
    seen: () => seen,
    stop: () => server.close(),
  };
}

/** An address where nothing listens. Another test can get the port of an instance that has ended, but not port 1. */

describe("an instance that exits before it responds", () => {
  let world: World;
  let sound: Instance;
  beforeAll(async () => {
    world = await World.open("sqlite", { router_wait_ms: 100 });
    sound = await Instance.start("sound");
  });
  afterAll(async () => {
    await world.close();
    await sound.stop();
  });

  /** What comes back when the fragile one is asked first. */
  async function afterFragile(
    options: { method: string; body?: string },
    others: Upstream[] = [sound.upstream],
    onRequest = () => {},
  ) {
    const fragile = await startFragile();
    const { path, deployment_id } = await world.deployed(fragile);
    // The least busy comes first, so the others have something to do.
    const before = sound.seen.length;
    for (;;) {
      world.router.activate(deployment_id, [fragile, ...others]);
      onRequest();
      const answer = await world.process.send(path, { headers: ADMIN, ...options });
      if (fragile.seen() === 0) continue;
      fragile.stop();
      return {
        status: answer.status,
        detail: answer.body?.detail,
        seen: fragile.seen(),
        others: sound.seen.length - before,
      };
    }
  }

  it.each(["GET", "HEAD", "PUT", "DELETE"])("has its %s answered by another", async (method) => {
    expect(await afterFragile({ method })).toMatchObject({ status: 200, seen: 1 });
  });

  it.each([
    ["POST without a body, which may have been done", { method: "POST" }],
    ["POST", { method: "POST", body: "text" }],
    ["PUT with a body, which is gone", { method: "PUT", body: "text" }],
    ["GET with a body", { method: "GET", body: "text" }],
  ])("has its %s answered 502", async (_, options) => {
    const answer = await afterFragile(options);
    expect(answer).toMatchObject({
      status: 502,
      detail: expect.stringContaining("stopped before it responded"),
      seen: 1,
    });
  });

  it("has its GET answered 502 when there is no other instance, or when the other exits too", async () => {
    expect(await afterFragile({ method: "GET" }, [])).toMatchObject({ status: 502, seen: 1 });
    const [second, third] = [await startFragile(), await startFragile()];
    const seen = () => second.seen() + third.seen();
    let before = 0;
    const onRequest = () => {
      before = seen();
    };
    expect(await afterFragile({ method: "GET" }, [second, third], onRequest)).toMatchObject({ status: 502 });
    expect(seen() - before).toBeLessThanOrEqual(2);
    second.stop();
    third.stop();
  });

  it("has any request answered by another when it accepted no connection", async () => {
    for (const options of [{ method: "GET" }, { method: "POST" }, { method: "POST", body: "x".repeat(100_000) }]) {
      const { path } = await world.deployed(unreachable(), unreachable(), sound.upstream);
      for (let n = 0; n < 3; n++)
        expect((await world.process.send(path, { headers: ADMIN, ...options })).text).toBe("sound");
    }
  });

  it("is waited for when it accepted no connection and there is no other", async () => {
    const patient = await World.open();
    const { path, deployment_id } = await patient.deployed(unreachable());
    const waiting = patient.process.send(path, { headers: ADMIN, method: "POST", body: "text" });
    await patient.process.send(`${path}/ok`, { headers: ADMIN });
    patient.router.activate(deployment_id, [sound.upstream]);
    expect((await waiting).text).toBe("sound");
    await patient.close();
    const { path: dead } = await world.deployed(unreachable());
    expect((await world.process.send(dead, { headers: ADMIN, method: "POST", body: "text" })).status).toBe(503);
  });

  it("gets the request again over a new connection when it had only closed an old one", async () => {
    const sockets = new Set<Socket>();
    let hangsUp = false;
    const instance = await Instance.start("there", (request, response) => {
      if (hangsUp && sockets.has(request.socket)) return void request.socket.destroy();
      sockets.add(request.socket);
      response.end("there");
    });
    const { path } = await world.deployed(instance.upstream);
    expect((await world.process.send(path, { headers: ADMIN })).text).toBe("there");
    hangsUp = true;
    expect((await world.process.send(path, { headers: ADMIN })).text).toBe("there");
    expect(instance.seen.length).toBe(3);
    await until("nothing is in flight", async () => world.router.inFlight(instance.upstream.instance_id) === 0);
    await instance.stop();
  });
});
