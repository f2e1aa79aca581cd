import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./process.ts";
import { until } from "./until.ts";

/** A registry of images on this machine. */
export interface TestRegistry {
  /** What the names of its images begin with. */
  host: string;
  /** From now on it answers only to credentials, which nobody has. */
  demandCredentials(): Promise<void>;
  stop(): Promise<void>;
}

/** Of no password. */
const USERS = `nobody:$2y$05$${"a".repeat(53)}\n`;

const PROGRAM = "/usr/bin/docker-registry";

/** Why there is no registry to be had here; undefined: there is. With CI set nothing may be missing. */
export function registryMissing(): string | undefined {
  if (existsSync(PROGRAM)) return undefined;
  const missing = "docker-registry is missing: apt-get install docker-registry.";
  if (process.env.CI) throw new Error(`CI runs everything, but ${missing}`);
  console.warn(`\nPulls of images are not tested: ${missing}\n`);
  return missing;
}

export async function startRegistry(): Promise<TestRegistry> {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-registry-"));
  const host = `127.0.0.1:${await freePort()}`;
  const config = {
    version: "0.1",
    log: { level: "error" },
    storage: { filesystem: { rootdirectory: join(folder, "images") } },
    http: { addr: host },
  };
  const users = join(folder, "users");
  writeFileSync(users, USERS);
  const start = async (more: object = {}) => {
    const file = join(folder, "config.json");
    writeFileSync(file, JSON.stringify({ ...config, ...more }));
    const registry = spawn(PROGRAM, ["serve", file], { stdio: "ignore" });
    await until("the registry answers", () => fetch(`http://${host}/v2/`).then(Boolean, () => false));
    return registry;
  };
  const end = async () => {
    if (registry.signalCode !== null) return;
    const ended = once(registry, "exit");
    registry.kill("SIGKILL");
    await ended;
  };
  let registry = await start();
  return {
    host,
    async demandCredentials() {
      await end();
      registry = await start({ auth: { htpasswd: { realm: "test", path: users } } });
    },
    async stop() {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
