import { EventEmitter, once } from "node:events";
import { Agent, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COUNTS } from "../../support/counts.ts";
import { until } from "../../support/until.ts";
import { Instance } from "./instance.ts";
import { ADMIN, readAll, World } from "./world.ts";

describe("a switch", () => {
  let world: World;
  const instances: Instance[] = [];
  beforeAll(async () => {
    world = await World.open();
  });
  afterAll(async () => {
    await world.close();
    for (const instance of instances) await instance.stop();
  });

  const instance = async (...options: Parameters<typeof Instance.start>): Promise<Instance> => {
    const made = await Instance.start(...options);
    instances.push(made);
    return made;
  };

  it("fails none of the requests while many of them are made", { timeout: 120_000 }, async () => {
    const REQUESTS = COUNTS.router_requests;
    const SWITCHES = REQUESTS / 200;
    const first = await instance("1");
    const { path, deployment_id } = await world.deployed(first.upstream);
    const agent = new Agent({ keepAlive: true, maxSockets: 32 });
    let asked = 0;
    let serving = 1;
    const wrong: unknown[] = [];
    const client = async (n: number) => {
      for (; asked < REQUESTS; ) {
        asked += 1;
        // What is asked after the switch is answered by what it has switched to.
        const least = serving;
        const body = n % 2 === 0 ? "some text" : undefined;
        const method = body === undefined ? "GET" : "POST";
        const answer = await world.process.send(`${path}/x`, { method, agent, headers: ADMIN, ...(body && { body }) });
        if (answer.status !== 200 || Number(answer.text) < least) wrong.push([answer.status, answer.text, least]);
      }
    };
    const clients = Promise.all(Array.from({ length: 32 }, (_, n) => client(n)));
    let old = first;
    for (let n = 2; n <= SWITCHES + 1; n++) {
      await until("it is time for a switch", async () => asked >= ((n - 1) * REQUESTS) / (SWITCHES + 2));
      const next = await Instance.start(String(n));
      world.router.activate(deployment_id, [next.upstream]);
      serving = n;
      const { instance_id } = old.upstream;
      await until("the old one has nothing left to end", async () => world.router.inFlight(instance_id) === 0);
      // From then on it can go at once.
      await old.stop();
      instances.push(next);
      old = next;
    }
    instances.splice(0, instances.length, old);
    await clients;
    agent.destroy();
    expect(wrong).toEqual([]);
    expect(asked).toBe(REQUESTS);
  });

  it("leaves streams where they are, and counts them", async () => {
    const signal = new EventEmitter().setMaxListeners(0);
    const begin = (_: unknown, response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("begun\n");
      signal.once("continue", () => response.end("ended\n"));
    };
    const [old, next] = [await instance("old", begin), await instance("next")];
    const { path, deployment_id } = await world.deployed(old.upstream);
    const streams = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const stream = (await world.process.open(path, { headers: ADMIN })).setEncoding("utf8");
        expect(await once(stream, "data")).toEqual(["begun\n"]);
        return stream;
      }),
    );
    world.router.activate(deployment_id, [next.upstream]);
    expect((await world.process.send(path, { headers: ADMIN })).text).toBe("next");
    expect(world.router.inFlight(old.upstream.instance_id)).toBe(20);
    const ends = streams.map((stream) => readAll(stream));
    signal.emit("continue");
    for (const { text } of await Promise.all(ends)) expect(text).toBe("ended\n");
    await until("nothing is left", async () => world.router.inFlight(old.upstream.instance_id) === 0);
  });

  it("distributes requests to all instances of the revision, to the least busy first", async () => {
    const held: ServerResponse[] = [];
    const busy = await instance("busy", (_, response) => void held.push(response));
    const { path, deployment_id } = await world.deployed(busy.upstream);
    const waiting = Promise.all([1, 2, 3].map(() => world.process.send(path, { headers: ADMIN })));
    await until("three are in flight", async () => held.length === 3);
    const [one, other] = [await instance("one"), await instance("other")];
    world.router.activate(deployment_id, [busy.upstream, one.upstream, other.upstream]);
    for (let n = 0; n < 10; n++)
      expect((await world.process.send(path, { headers: ADMIN })).text).toMatch(/^(one|other)$/);
    expect([busy.seen.length, one.seen.length >= 2, other.seen.length >= 2]).toEqual([3, true, true]);
    for (const response of held) response.end();
    await waiting;
  });

  it("from none to one is waited for", async () => {
    const made = await instance("ready at last");
    const { path, deployment_id } = await world.deployed();
    const waiting = Promise.all([
      world.process.send(path, { headers: ADMIN }),
      world.process.send(path, { headers: ADMIN, method: "POST", body: "text" }),
    ]);
    // Another change that brings nobody is not what they wait for.
    world.router.activate(deployment_id, []);
    await world.process.send(`${path}/ok`, { headers: ADMIN });
    world.router.activate(deployment_id, [made.upstream]);
    expect((await waiting).map(({ text }) => text)).toEqual(["ready at last", "ready at last"]);
  });

  it("to a deleted deployment is 404", async () => {
    const made = await instance();
    const { path, deployment_id, slug } = await world.deployed(made.upstream);
    const { path: empty, deployment_id: emptied } = await world.deployed();
    const waiting = world.process.send(empty, { headers: ADMIN });
    await world.process.send(`${path}/ok`, { headers: ADMIN });
    for (const id of [deployment_id, emptied]) {
      await world.storage.database.write((tx) =>
        tx.run(tx.k.updateTable("deployments").set({ status: "AWAITING_DELETE" }).where("deployment_id", "=", id)),
      );
      world.router.deactivate(id);
      world.router.deactivate(id);
    }
    expect((await waiting).status).toBe(404);
    expect(await world.process.send(path, { headers: ADMIN })).toMatchObject({
      status: 404,
      body: { detail: `Deployment ID ${slug} not found.` },
    });
  });
});

describe("without an instance", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.open("sqlite", { router_wait_ms: 100 });
  });
  afterAll(() => world.close());

  it("a request finally gets 503 with Retry-After", async () => {
    const { path, slug } = await world.deployed();
    for (const method of ["GET", "POST"]) {
      const answer = await world.process.send(path, { method, headers: ADMIN });
      expect(answer).toMatchObject({
        status: 503,
        headers: { "retry-after": "1" },
        body: {
          detail: `No instance of the deployment "${slug}" is ready. Check the status and the logs of the deployment, then try again.`,
        },
      });
    }
  });

  it("a request gets 503 if the address of its instance cannot be used", async () => {
    for (const address of ["", "nowhere", "https://127.0.0.1:1"]) {
      const { path } = await world.deployed({ instance_id: address, address, api_key: "key" });
      expect((await world.process.send(path, { headers: ADMIN })).status).toBe(503);
    }
  });

  it("a readiness check does not wait", async () => {
    const slow = await World.open("sqlite", { router_wait_ms: 2 ** 30 });
    const { path } = await slow.deployed();
    expect((await slow.process.send(`${path}/ok`, { headers: ADMIN })).status).toBe(503);
    await slow.close();
  });
});
