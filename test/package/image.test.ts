import { execFileSync } from "node:child_process";
import { existsSync, globSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { temporaryFolder } from "../control/deployed-project.ts";
import { readCompose, type Yaml } from "../support/compose-file.ts";
import { createDatabase } from "../support/databases.ts";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { encryptionEnv } from "../support/encryption.ts";
import { freePort } from "../support/process.ts";
import { until } from "../support/until.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const NODE_IMAGE = "node-of-this-machine:test";
/** Certificates that this machine trusts, as Node brings its own. */
const BASE_CONFIG = ["ENV PATH=/usr/bin HOME=/tmp NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"];

/** What the Dockerfile needs of its base image, by path, and where this machine has it: Node, npm, a shell and its commands. */
function baseContents(folder: string): Record<string, string> {
  const npm = join(folder, "npm");
  writeFileSync(npm, '#!/bin/sh\nexec node /opt/npm/bin/npm-cli.js "$@"\n', { mode: 0o755 });
  const path = (command: string) => execFileSync("which", [command], { encoding: "utf8" }).trim();
  const commands = ["sh", "mkdir", "chown", "rm", "env", "uname", "sed", "dirname", "basename"].map(path);
  const bindings = globSync("node_modules/**/*.node", { cwd: ROOT }).map((file) => join(ROOT, file));
  const programs = [process.execPath, ...commands, ...bindings].map((file) => realpathSync(file));
  const libraries = programs.flatMap((file) => [
    ...execFileSync("ldd", [file], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g),
  ]);
  return {
    "usr/bin/node": process.execPath,
    "usr/bin/npm": npm,
    "opt/npm": dirname(dirname(realpathSync(path("npm")))),
    "bin/sh": realpathSync(path("sh")),
    ...Object.fromEntries(commands.map((file) => [`usr/bin/${file.split("/").at(-1)}`, realpathSync(file)])),
    ...Object.fromEntries(libraries.map(([, file = ""]) => [file.slice(1), realpathSync(file)])),
    "etc/ssl/certs": "/etc/ssl/certs",
  };
}

describe.skipIf(engineMissing())("the Dockerfile", () => {
  let engine: TestEngine;

  beforeAll(async () => {
    engine = await startEngine({
      base: { name: NODE_IMAGE, contents: baseContents(temporaryFolder()), config: BASE_CONFIG },
    });
    const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: ROOT });
    const registry = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
    await engine.build(
      {
        context: ROOT,
        src: files
          .toString()
          .trim()
          .split("\n")
          .filter((file) => existsSync(join(ROOT, file))),
      },
      { t: "threadmill", networkmode: "host", buildargs: { NODE_IMAGE, NPM_CONFIG_REGISTRY: registry } },
    );
  }, 600_000);
  afterAll(() => engine?.stop());

  it.skipIf(!inject("postgres"))(
    "makes an image for API processes and workers, as deploy/compose.yaml restricts them",
    async () => {
      const database = await createDatabase("postgres", { empty: true });
      const { api, worker } = readCompose().services;
      const values = { ...encryptionEnv(database.url), THREADMILL_DATABASE_URL: database.url, API_KEYS: "key" };
      const start = async (service: Yaml, data: string[]) => {
        const port = await freePort();
        const tmpfs = service.tmpfs.map((mount: string) => [...mount.split(":"), ""].slice(0, 2));
        const container = await engine.docker.createContainer({
          Image: service.image,
          User: service.user,
          Env: Object.entries({ ...service.environment, ...values, PORT: port }).map(
            ([name, value]) => `${name}=${value}`,
          ),
          HostConfig: {
            NetworkMode: "host",
            Init: service.init,
            ReadonlyRootfs: service.read_only,
            CapDrop: service.cap_drop,
            SecurityOpt: service.security_opt,
            Tmpfs: Object.fromEntries(tmpfs),
            Binds: [`${join(ROOT, "test/package")}:/project:ro`, ...data],
          },
        });
        await container.start();
        const [, ...check] = service.healthcheck.test.map((part: string) => part.replace("2024", String(port)));
        await until("the health check succeeds", async () => {
          const { State } = await container.inspect();
          if (!State.Running) throw new Error((await container.logs({ stdout: true, stderr: true })).toString());
          return (await engine.execIn(container.id, check)).status === 0;
        });
        return { container, url: `http://127.0.0.1:${port}` };
      };
      try {
        const [first, second] = [await start(api, api.volumes.slice(0, 1)), await start(worker, [])];
        const headers = { "x-api-key": "key", "content-type": "application/json" };
        const body = JSON.stringify({ assistant_id: "hello", input: { name: "worker" } });
        const run = (url: string) => fetch(`${url}/runs/wait`, { method: "POST", headers, body });
        expect(await (await run(first.url)).json()).toMatchObject({ greeting: "Hello, worker!" });
        expect((await run(second.url)).status).toBe(404);
        expect((await fetch(`${first.url}/assistants/search`, { method: "POST", headers, body: "{}" })).status).toBe(
          200,
        );
        const stopped = performance.now();
        for (const { container } of [first, second]) await container.stop({ t: 60 });
        expect(performance.now() - stopped).toBeLessThan(20_000);
        expect((await second.container.inspect()).State.ExitCode).toBe(0);
      } finally {
        await database.drop();
      }
    },
  );

  it("makes an image that serves a project as a user without privileges", async () => {
    const port = await freePort();
    const container = await engine.docker.createContainer({
      Image: "threadmill",
      Env: [`PORT=${port}`, "API_KEYS=key"],
      HostConfig: { NetworkMode: "host", Binds: [`${join(ROOT, "test/package")}:/project:ro`] },
    });
    await container.start();
    const url = `http://127.0.0.1:${port}`;
    await until("the service answers", async () => {
      const { State } = await container.inspect();
      if (!State.Running) throw new Error((await container.logs({ stdout: true, stderr: true })).toString());
      return fetch(`${url}/ok`).then(
        ({ ok }) => ok,
        () => false,
      );
    });
    const response = await fetch(`${url}/runs/wait`, {
      method: "POST",
      headers: { "x-api-key": "key", "content-type": "application/json" },
      body: JSON.stringify({ assistant_id: "hello", input: { name: "image" } }),
    });
    expect(await response.json()).toMatchObject({ greeting: "Hello, image!" });
    const { output } = await engine.execIn(container.id, ["node", "-p", "process.getuid() + ' ' + process.getgid()"]);
    expect(output).toBe("1000 1000");
    expect((await fetch(`${url}/assistants/search`, { method: "POST", body: "{}" })).status).toBe(401);
  });
});
