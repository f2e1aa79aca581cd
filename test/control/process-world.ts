import { rmSync } from "node:fs";
import { join } from "node:path";
import type { BuildSpec, DeployDriver, LogLine } from "../../src/control-plane/drivers/driver.ts";
import { createProcessDriver, type ProcessDriverOptions } from "../../src/control-plane/drivers/process/driver.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, type DatabaseName, type TestDatabase } from "../support/databases.ts";
import { PROGRAM } from "../support/program.ts";
import { openOn } from "../support/storage.ts";

/** A process driver with a data folder of its own. */
export interface ProcessWorld {
  at: TestDatabase;
  /** Where the driver keeps its files. */
  folder: string;
  driver: DeployDriver;
  database: Database;
  /** Another driver on the same folder, as a service that starts anew would have it. */
  restart(): Promise<void>;
  build(source: BuildSpec["source"], more?: Partial<BuildSpec>, signal?: AbortSignal): Promise<BuildResult>;
  close(): Promise<void>;
}

export interface BuildResult {
  artifact: string;
  commit_sha?: string;
  /** What the build wrote. */
  lines: LogLine[];
  folder: string;
}

export async function openProcessWorld(
  name: DatabaseName,
  more: Partial<ProcessDriverOptions> = {},
): Promise<ProcessWorld> {
  const at = await createDatabase(name);
  const database = openOn(at);
  const open = () =>
    createProcessDriver({
      data_dir: at.data_dir,
      program: PROGRAM,
      system_env: { PATH: process.env.PATH ?? "", LANG: "C.UTF-8" },
      build_timeout_ms: 60_000,
      orphan_ms: 86_400_000,
      git_protocols: ["https", "file"],
      git_hosts: [],
      deploy_user: { from: 61_184, to: 65_519 },
      deploy_process: "auto",
      database,
      database_url: at.url,
      log: createLog("silent"),
      ...more,
    });
  const world: ProcessWorld = {
    at,
    folder: join(at.data_dir, "control"),
    driver: await open(),
    database,
    async restart() {
      await world.driver.close?.();
      world.driver = await open();
    },
    async build(source, more = {}, signal = new AbortController().signal) {
      const lines: LogLine[] = [];
      const order: BuildSpec = {
        deployment_id: "00000000-0000-4000-8000-000000000001",
        revision_id: "00000000-0000-4000-8000-000000000002",
        source,
        config_path: undefined,
        install_command: undefined,
        build_command: undefined,
        env: {},
        ...more,
      };
      const built = await (world.driver.build as NonNullable<DeployDriver["build"]>)(order, {
        log: (line) => lines.push(line),
        signal,
      });
      return { ...built, lines, folder: join(world.folder, "builds", order.deployment_id, built.artifact) };
    },
    async close() {
      for (const ref of await world.driver.list()) await world.driver.stop(ref, { grace_ms: 0 });
      await world.driver.close?.();
      await database.close();
      await at.drop();
      rmSync(at.data_dir, { recursive: true, force: true });
    },
  };
  return world;
}
