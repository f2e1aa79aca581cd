import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Instance } from "./instance.ts";
import { ADMIN, ITSELF, World, type WorldOptions } from "./world.ts";

describe.each<[string, WorldOptions]>([
  ["at the root", {}],
  ["below a prefix", { prefix: "/agents" }],
])("a deployment's path %s", (_, options) => {
  const { prefix = "" } = options;
  let world: World;
  let one: Instance;
  let other: Instance;
  beforeAll(async () => {
    world = await World.open("sqlite", options);
    [one, other] = [await Instance.start("one"), await Instance.start("other")];
    for (const instance of [one, other]) {
      const { deployment_id } = await world.deployment({ slug: instance.name });
      world.router.activate(deployment_id, [instance.upstream]);
    }
  });
  afterAll(async () => {
    await world.close();
    for (const instance of [one, other]) await instance.stop();
  });

  const send = (path: string) => world.process.send(prefix + path, { headers: ADMIN });

  it.each([
    ["/deployments/one/threads", "/threads"],
    ["/deployments/one/", "/"],
    ["/deployments/one", "/"],
    ["/deployments/one?x=1", "/?x=1"],
    ["/deployments/one/a?x=/deployments/other/../y", "/a?x=/deployments/other/../y"],
    ["/deployments/one/store/a%2Fb/%C3%A9%20x", "/store/a%2Fb/%C3%A9%20x"],
    ["/deployments/one//double", "//double"],
    ["/deployments/one/deployments/other/x", "/deployments/other/x"],
    ["/deployments/one/...", "/..."],
    ["/deployments/one/.well-known/x..y", "/.well-known/x..y"],
  ])("%s is %s of its server, forwarded literally", async (path, expected) => {
    expect((await send(path)).text).toBe("one");
    expect(one.last.url).toBe(expected);
    expect(one.last.headers).toMatchObject({
      host: one.upstream.address.slice("http://".length),
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": `127.0.0.1:${world.process.port}`,
      "x-forwarded-prefix": `${prefix}/deployments/one`,
    });
  });

  it.each([
    "/deployments/one/../other/x",
    "/deployments/one/..",
    "/deployments/one/../../admin/keys",
    "/deployments/one/a/./b",
    "/deployments/one/%2e%2e/other/x",
    "/deployments/one/a/%2E./x",
    "/deployments/one/a%2f..%2fx",
    "/deployments/one/..%2fother",
    "/deployments/one/..%5cother",
    "/deployments/one/..\\other",
    "/deployments/one/.?x=1",
  ])("%s does not exist", async (path) => {
    const before = [one.seen.length, other.seen.length];
    expect(await send(path)).toMatchObject({
      status: 422,
      body: { detail: 'The path must not contain the segments "." or "..".' },
    });
    expect([one.seen.length, other.seen.length]).toEqual(before);
  });

  it.each([
    "/deployments/One/x",
    "/deployments/%6fne/x",
    "/deployments/one%2f/x",
    "/deployments/one%00/x",
    "/deployments/one;x/y",
    "/deployments/-/x",
    "/deployments/../x",
    "/deployments/./one/x",
    "/deployments/nothing/x",
    `/deployments/${"x".repeat(100)}/y`,
  ])("%s belongs to no deployment", async (path) => {
    expect((await send(path)).status).toBe(404);
  });

  it.each([
    "/",
    "/deployments",
    "/deployments/",
    "/deployments//one/x",
    "/deploymentsx/one",
    "/v2/deployments/one/x",
    "//deployments/one/x",
  ])("%s is the service's own", async (path) => {
    expect((await send(path)).text).toBe(ITSELF);
  });

  it("it is not reachable elsewhere", async () => {
    if (prefix === "") return;
    expect((await world.process.send("/deployments/one/x", { headers: ADMIN })).text).toBe(ITSELF);
  });
});

describe("a deployment's host name", () => {
  let world: World;
  let instance: Instance;
  beforeAll(async () => {
    world = await World.open("sqlite", { prefix: "/agents", deployments_domain: "agents.example.com" });
    instance = await Instance.start("mine");
    const { deployment_id } = await world.deployment({ slug: "my-agent" });
    world.router.activate(deployment_id, [instance.upstream]);
  });
  afterAll(async () => {
    await world.close();
    await instance.stop();
  });

  const send = (host: string, path = "/threads?x=1") => world.process.send(path, { headers: { ...ADMIN, host } });

  it.each([
    "my-agent.localhost",
    "my-agent.localhost:2024",
    "MY-AGENT.localhost",
    "my-agent.agents.example.com",
    "my-agent.Agents.Example.com:443",
  ])("%s leads to it with the whole path", async (host) => {
    expect((await send(host)).text).toBe("mine");
    expect(instance.last.url).toBe("/threads?x=1");
    expect(instance.last.headers).toMatchObject({ "x-forwarded-host": host });
    expect(instance.last.headers).not.toHaveProperty("x-forwarded-prefix");
    expect((await send(host, "/../x")).status).toBe(422);
    expect((await send(host, "http://evil.example/x")).status).toBe(422);
  });

  it.each(["other.localhost", "localhost", "a.my-agent.localhost", "my-agent.localhost.evil.example", "127.0.0.1"])(
    "%s is the service's own",
    async (host) => {
      expect((await send(host)).text).toBe(ITSELF);
    },
  );

  it.each([
    "other.agents.example.com",
    "a.my-agent.agents.example.com",
    "my_agent.agents.example.com",
    ".agents.example.com",
  ])("%s belongs to no deployment", async (host) => {
    expect((await send(host)).status).toBe(404);
  });

  it("requires a key as its path does", async () => {
    const without = (path: string) => world.process.send(path, { headers: { host: "my-agent.localhost" } });
    expect((await without("/threads")).status).toBe(401);
    expect((await without("/ok")).status).toBe(401);
    expect((await without("/deployments/my-agent/ok")).status).toBe(401);
  });

  it("under localhost does not exist on an address that others can reach", async () => {
    const reachable = await world.another({ is_loopback: false });
    reachable.router.activate("x", [instance.upstream]);
    const answer = await reachable.send("/threads", { headers: { ...ADMIN, host: "my-agent.localhost" } });
    expect(answer.text).toBe(ITSELF);
  });
});

describe("the location in a response of an instance", () => {
  let world: World;
  let instance: Instance;
  let path: string;
  let slug: string;
  beforeAll(async () => {
    world = await World.open();
    instance = await Instance.start("mine", (request, response) => {
      const [status, location] = JSON.parse(String(request.headers["x-say"]));
      response.writeHead(status, { location, "content-location": location }).end();
    });
    ({ path, slug } = await world.deployed(instance.upstream));
  });
  afterAll(async () => {
    await world.close();
    await instance.stop();
  });

  const say = async (status: number, location: string, host?: string) => {
    const headers = { ...ADMIN, "x-say": JSON.stringify([status, location]), ...(host && { host }) };
    return (await world.process.send(host ? "/x" : `${path}/x`, { headers })).headers;
  };

  // The clients put it behind their base URL, which ends with the prefix already.
  it("is unchanged for a stream", async () => {
    const location = "/threads/1/runs/2/stream";
    expect(await say(200, location)).toMatchObject({ location, "content-location": location });
  });

  it("is below the deployment's path for a redirect", async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      expect((await say(status, "/docs?x=/y")).location).toBe(`${path}/docs?x=/y`);
      expect((await say(status, `${instance.upstream.address}/docs`)).location).toBe(`${path}/docs`);
      for (const away of ["https://example.com/docs", "//example.com/docs", "docs", "../docs"])
        expect((await say(status, away)).location).toBe(away);
    }
  });

  it("is unchanged for a redirect under the deployment's own host name", async () => {
    expect((await say(302, "/docs", `${slug}.localhost`)).location).toBe("/docs");
    expect((await say(302, `${instance.upstream.address}/docs`, `${slug}.localhost`)).location).toBe("/docs");
  });
});
