import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { registryMissing, startRegistry, type TestRegistry } from "../support/registry.ts";
import { type DockerWorld, openDockerWorld } from "./docker-world.ts";

describe.skipIf(engineMissing() ?? registryMissing())("the image of a revision", () => {
  let engine: TestEngine;
  let registry: TestRegistry;
  let world: DockerWorld;
  let received: string[];
  beforeAll(async () => {
    engine = await startEngine({ bare: true });
    registry = await startRegistry();
  }, 180_000);
  afterAll(async () => {
    await registry.stop();
    await engine.stop();
  }, 60_000);
  beforeEach(async () => {
    world = await open();
    received = [];
  });
  afterEach(() => world.close());

  const open = () =>
    openDockerWorld("sqlite", { docker_socket: engine.socket, docker_registries: ["localhost", registry.host] });
  const pin = (image: string, deployment_id: string = randomUUID(), pinned = false): Promise<string> =>
    (world.driver.pin as NonNullable<typeof world.driver.pin>)(
      { deployment_id, image, pinned },
      { log: ({ message }) => received.push(message), signal: new AbortController().signal },
    );
  const idOf = (image: string) =>
    engine.docker
      .getImage(image)
      .inspect()
      .then(({ Id }) => Id)
      .catch(() => undefined);
  /** Puts an image into the registry, and out of the engine. */
  const publish = async (name: string, content: string): Promise<string> => {
    const image = `${registry.host}/${name}`;
    const id = await engine.imageOf(image, { content });
    await engine.push(image);
    await engine.docker.getImage(id).remove({ force: true });
    return image;
  };
  const remove = (deployment_id: string) => world.driver.remove({ deployment_id, artifacts: [] });

  it("that was tagged on this machine is identified by its id, even when its tag has moved", async () => {
    const first = await engine.imageOf("localhost/agents/local:1", { content: "first" });
    expect(await pin("localhost/agents/local:1")).toBe(first);
    const second = await engine.imageOf("localhost/agents/local:1", { content: "second" });
    expect(await pin(first, randomUUID(), true)).toBe(first);
    expect(await pin("localhost/agents/local:1")).toBe(second);
    expect(received).toEqual([]);
  });

  it("is pulled when it is missing, and is identified and pulled again by its digest", async () => {
    const image = await publish("agents/pulled:1", "pulled");
    const artifact = await pin(image);
    expect(artifact).toMatch(new RegExp(`^${registry.host}/agents/pulled@sha256:[0-9a-f]{64}$`));
    const id = await idOf(artifact);
    await engine.docker.getImage(id as string).remove({ force: true });
    expect(await pin(artifact)).toBe(artifact);
    expect(await idOf(artifact)).toBe(id);
    expect(received).toEqual([`Pulling the image ${artifact}`, `Pulling the image ${artifact}`]);
  });

  it("is the one that its tag refers to now, for a new revision", async () => {
    const image = await publish("agents/moving:1", "before");
    const before = await pin(image);
    await publish("agents/moving:1", "after");
    const after = await pin(image);
    expect(after).not.toBe(before);
  });

  it("does not change when the registry is unreachable, and a new revision fails with an error message", async () => {
    const image = await publish("agents/lonely:1", "lonely");
    const deployment_id = randomUUID();
    const artifact = await pin(image, deployment_id);
    await registry.stop();
    expect(await pin(artifact, deployment_id, true)).toBe(artifact);
    await expect(pin(image, deployment_id)).rejects.toThrow(
      / could not be looked up in the registry .*: .*connection refused/,
    );
    await world.close();
    registry = await startRegistry();
    world = await open();
  });

  it("is removed with the last deployment that it was pulled for, but not if it existed before", async () => {
    const image = await publish("agents/shared:1", "shared");
    const [one, other] = [randomUUID(), randomUUID()];
    const artifact = await pin(image, one);
    expect(await pin(image, other)).toBe(artifact);
    await remove(one);
    expect(await idOf(artifact)).toBeDefined();
    await remove(other);
    expect(await idOf(artifact)).toBeUndefined();

    const mine = await engine.imageOf("localhost/agents/mine:1", { content: "mine" });
    await pin("localhost/agents/mine:1", one);
    await remove(one);
    expect(await idOf(mine)).toBe(mine);
  });

  it("is reported with an error message when it is missing", async () => {
    await expect(pin(`${registry.host}/agents/nobody-has:1`)).rejects.toThrow(
      /^The image 127\.0\.0\.1:\d+\/agents\/nobody-has:1 could not be looked up in the registry 127\.0\.0\.1:\d+: .*unknown.*\.$/,
    );
    await expect(pin("localhost/agents/nobody-has:1")).rejects.toThrow(
      "The image localhost/agents/nobody-has:1 does not exist in the Docker Engine: build an image with this name, or tag an existing image with it.",
    );
    await expect(pin(`sha256:${"0".repeat(64)}`, randomUUID(), true)).rejects.toThrow(/an image ID cannot be pulled/);
  });
});

describe("a service without an engine", () => {
  it("fails revisions of images with a sentence that says what to do, and has nothing to list or remove", async () => {
    const world = await openDockerWorld("sqlite", { docker_socket: "/nowhere/docker.sock" });
    const io = { log: () => undefined, signal: new AbortController().signal };
    const order = { deployment_id: randomUUID(), image: "localhost/agents/any:1", pinned: false };
    await expect(world.driver.pin?.(order, io)).rejects.toThrow(
      "Cannot connect to the Docker Engine at /nowhere/docker.sock (ENOENT): start the engine, give this service access to the socket, or set THREADMILL_DOCKER_HOST to another socket.",
    );
    expect(await world.driver.list()).toEqual([]);
    await world.driver.remove({ deployment_id: randomUUID(), artifacts: [] });
    await world.close();
  });
});
