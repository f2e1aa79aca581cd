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
  stop(): Promise<void>;
}

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
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify(config));
  const registry = spawn(PROGRAM, ["serve", file], { stdio: "ignore" });
  await until("the registry answers", () =>
    fetch(`http://${host}/v2/`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return {
    host,
    async stop() {
      const ended = once(registry, "exit");
      registry.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
