import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { deploymentSettings } from "../../src/config/settings/deployments.ts";
import { type DockerWorld, openDockerWorld } from "../control/docker-world.ts";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { registryMissing, startRegistry, type TestRegistry } from "../support/registry.ts";

/** Finding 10 of the security review: any image on the engine could be started. */
describe.skipIf(engineMissing() ?? registryMissing())("an image that is on the engine", () => {
  let engine: TestEngine;
  let registry: TestRegistry;
  let world: DockerWorld;
  beforeAll(async () => {
    engine = await startEngine({ bare: true });
    registry = await startRegistry();
  }, 180_000);
  afterAll(async () => {
    await registry.stop();
    await engine.stop();
  }, 60_000);
  afterEach(() => world.close());

  const deploy = async (image: string, docker_registries: readonly string[], pinned = false) => {
    world = await openDockerWorld("sqlite", { docker_socket: engine.socket, docker_registries });
    return (world.driver.pin as NonNullable<typeof world.driver.pin>)(
      { deployment_id: randomUUID(), image, pinned },
      { log: () => undefined, signal: new AbortController().signal },
    );
  };
  /** An image that another user of the engine has pushed. */
  const ofAnother = async (name: string) => {
    const image = `${registry.host}/${name}`;
    const id = await engine.imageOf(image, { content: name });
    await engine.push(image);
    return { image, id };
  };

  it("is refused when its registry is not listed, with the name of the setting", async () => {
    const { image } = await ofAnother("agents/unlisted:1");
    await expect(deploy(image, [])).rejects.toThrow(
      `The image repository ${registry.host}/agents/unlisted is not allowed: add ${registry.host}/agents/unlisted or ${registry.host} to THREADMILL_DOCKER_REGISTRIES.`,
    );
    await world.close();
    await expect(deploy(image, ["ghcr.io", "localhost", registry.host.replace(/\d$/, "")])).rejects.toThrow(
      "is not allowed",
    );
  });

  it("is refused when another part of its registry is listed, and taken when its own is", async () => {
    const { image } = await ofAnother("agents-of-others/one:1");
    await expect(deploy(image, [`${registry.host}/agents`])).rejects.toThrow("is not allowed");
    await world.close();
    expect(await deploy(image, [`${registry.host}/agents-of-others`])).toContain("/agents-of-others/one@sha256:");
  });

  it("is refused when it is named by its id, or the beginning of it", async () => {
    const { id } = await ofAnother("agents/by-id:1");
    await expect(deploy(id, [registry.host, "localhost"])).rejects.toThrow(/is an image ID/);
    const bare = id.replace("sha256:", "");
    for (const name of [bare, bare.slice(0, 12), `localhost/${bare.slice(0, 12)}`]) {
      await world.close();
      await expect(deploy(name, ["localhost"])).rejects.toThrow(/is not allowed|does not exist in the Docker Engine/);
    }
  });

  it("is refused when it has no registry, unless it was tagged for this machine and such images are listed", async () => {
    const id = await engine.imageOf("agents/untagged:1", { content: "mine" });
    await expect(deploy("agents/untagged:1", ["localhost"])).rejects.toThrow(
      /^The image repository docker\.io\/\S+ is not allowed: add docker\.io\/\S+ or docker\.io to THREADMILL_DOCKER_REGISTRIES/,
    );
    await engine.docker.getImage(id).tag({ repo: "localhost/agents/tagged", tag: "1" });
    await world.close();
    await expect(deploy("localhost/agents/tagged:1", [])).rejects.toThrow(
      "The image repository localhost/agents/tagged is not allowed: add localhost/agents/tagged or localhost to THREADMILL_DOCKER_REGISTRIES",
    );
    await world.close();
    expect(await deploy("localhost/agents/tagged:1", ["localhost"])).toBe(id);
  });

  it("is refused when its registry does not know it by that name", async () => {
    const id = await engine.imageOf("agents/forged:1", { content: "forged" });
    await engine.docker.getImage(id).tag({ repo: `${registry.host}/agents/forged`, tag: "1" });
    await expect(deploy(`${registry.host}/agents/forged:1`, [registry.host])).rejects.toThrow(
      /The image .*\/agents\/forged:1 could not be looked up .*: .*unknown/,
    );
  });

  it("is refused when its registry wants credentials for it, even by its digest", async () => {
    const { image, id } = await ofAnother("agents/private:1");
    const { RepoDigests } = await engine.docker.getImage(id).inspect();
    await registry.demandCredentials();
    for (const name of [image, RepoDigests[0] as string]) {
      await expect(deploy(name, [registry.host])).rejects.toThrow(
        /could not be looked up in the registry .*: the image does not exist or is private \(.+\)\. This service pulls only public images: correct the image name, or make the image public\.$/,
      );
      await world.close();
    }
    await registry.stop();
    registry = await startRegistry();
    await deploy((await ofAnother("agents/open:1")).image, [registry.host]);
  });

  it.each([
    "a/../../containers/json",
    "localhost/../containers",
    "localhost/a//b",
    "localhost/A",
    "localhost/a:",
    "localhost/a@sha256:1",
    "localhost/a@sha512:0",
    "localhost/",
    "127.0.0.1:/a",
  ])("is not looked up by an invalid name: %s", async (name) => {
    await expect(deploy(name, ["localhost", "docker.io", "127.0.0.1:"])).rejects.toThrow(
      `"${name}" is not a valid image name: use a name such as host/name:tag.`,
    );
  });
});

describe("THREADMILL_DOCKER_REGISTRIES", () => {
  const read = (text?: string) => deploymentSettings.docker_registries.read(text, "THREADMILL_DOCKER_REGISTRIES");

  it("lists hosts and parts of them, and none by default", () => {
    expect(read()).toEqual([]);
    expect(read("GHCR.io/acme, localhost,registry:5000,127.0.0.1:5000/a/b")).toEqual([
      "ghcr.io/acme",
      "localhost",
      "registry:5000",
      "127.0.0.1:5000/a/b",
    ]);
  });

  it.each(["*", "acme", "https://ghcr.io", "ghcr.io/", "ghcr.io/acme:1"])("is refused when it has %s", (entry) => {
    expect(() => read(`docker.io,${entry}`)).toThrow(
      `THREADMILL_DOCKER_REGISTRIES must list registry hosts, optionally with a path, such as ghcr.io/acme, but contains "${entry}".`,
    );
  });
});
