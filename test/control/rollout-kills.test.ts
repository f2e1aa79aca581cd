import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { EndedEarly } from "../support/process.ts";
import { openOn } from "../support/storage.ts";
import { DeployedService } from "./deployed-service.ts";
import { projectOf, runOn } from "./load.ts";

/**
 * Where the service is killed during a roll-out, in the order in which it comes there; failpoints.ts says where that is. What a
 * started one does about the old instance first is counted.
 */
const ROLLOUT = [
  "build-begins",
  "build-is-made",
  "build-is-kept",
  "instance-is-wanted 2",
  "process-is-started",
  "instance-is-started 2",
  "instance-is-ready",
  "traffic-is-switched",
  "switch-is-committed",
  "old-one-is-stopped",
  "runs-are-taken-over",
];
/** Those at which a transaction has just been committed, or is next: the others are about files and processes. */
const ROLLOUT_ON_POSTGRES = ROLLOUT.filter((point) => /wanted|switched|committed|stopped|taken-over/.test(point));
const DELETION = ["folders-are-removed", "rows-are-left"];
const TABLES = ["instances", "revisions", "deployments", "source_uploads", "deployment_logs"];
const THREAD = "00000000-0000-4000-8000-0000000000aa";

describe.each(databases)("a service that is killed on %s", (name) => {
  let service: DeployedService;
  beforeAll(async () => {
    // On Postgres replaced instances go by time, and leases of the dead lapse.
    const env = { THREADMILL_DEPLOY_DRAIN: "1s", THREADMILL_DEPLOY_LEASE: "3000ms" };
    service = await DeployedService.start(name, env);
    await service.becomes(await service.deploy(projectOf("one")), "DEPLOYED");
    expect(await runOn(service, THREAD)).toEqual(["one"]);
  }, 300_000);
  afterAll(() => service.close(), 300_000);

  const control = (...path: string[]) => join(service.database.data_dir, "control", ...path);
  const filesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);

  /** What runs in folders of this service, also what nothing knows of: by what each is called in the list of processes. */
  const processes = () =>
    readdirSync("/proc")
      .filter((pid) => /^\d+$/.test(pid) && folderOf(pid).startsWith(control()))
      .map(commandOf);

  const rowsOf = async (table: string): Promise<Record<string, unknown>[]> => {
    const storage = openOn(service.database);
    const query = sql<Record<string, unknown>>`select * from ${sql.table(table)}`;
    const rows = await storage.read.all(query.compile(storage.read.k) as never);
    await storage.close();
    return rows as Record<string, unknown>[];
  };

  /** Starts a service that is killed at each of the points, one life after the other. */
  const dieAt = async (points: readonly string[], begin: () => Promise<unknown>) => {
    for (const [n, point] of points.entries()) {
      await service.stop("SIGKILL");
      try {
        await service.start(...point.split(" "));
        if (n === 0) await begin();
        await service.server.ended;
      } catch (error) {
        // It may come there before it is up.
        if (!(error instanceof EndedEarly) || error.message !== "") throw error;
      }
    }
    await service.stop("SIGKILL");
    await service.start();
  };

  it("in the middle of each step of a rollout ends the same: one instance serves, and nothing is left of others", async () => {
    let revision_id = "";
    await dieAt(name === "postgres" ? ROLLOUT_ON_POSTGRES : ROLLOUT, async () => {
      revision_id = await service.deploy(projectOf("two"));
    });
    await service.becomes(revision_id, "DEPLOYED");
    await service.holds("the old instance is deleted", async () => (await rowsOf("instances")).length === 1);

    expect(await service.deployment()).toMatchObject({ active_revision_id: revision_id, status: "READY" });
    expect(await runOn(service, THREAD)).toEqual(["one", "two"]);
    const [instance] = await rowsOf("instances");
    expect(instance).toMatchObject({ revision_id, state: "ready" });
    const instance_id = instance?.instance_id as string;
    await service.holds("what belongs to nobody is deleted", async () => processes().length === 1);
    expect(processes()).toEqual([expect.stringContaining(instance_id)]);
    expect(filesIn(control("run"))).toEqual([`${instance_id}.json`]);
    expect(filesIn(control("logs")).filter((file) => !file.startsWith(instance_id))).toEqual([]);
    expect(filesIn(control("making"))).toEqual([]);
    const artifacts = (await rowsOf("revisions")).map(({ artifact }) => artifact);
    expect(filesIn(control("builds", service.deployment_id)).sort()).toEqual(artifacts.sort());
  }, 600_000);

  it("in the middle of a deletion leaves no process, no file and no row", async () => {
    await dieAt(DELETION, () => service.send("DELETE", `/v2/deployments/${service.deployment_id}`));
    await service.deleted();

    for (const table of TABLES) expect([table, await rowsOf(table)]).toEqual([table, []]);
    expect(processes()).toEqual([]);
    const left = readdirSync(control(), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() || entry.name.includes(service.deployment_id))
      .map(({ parentPath, name }) => join(parentPath, name))
      // What all deployments share: packages of Threadmill, what npm has downloaded, and the sign of life of the service.
      .filter((path) => !/\/(npm-cache|node_modules)\/|\/heartbeat$/.test(path));
    expect(left).toEqual([]);
    if (name === "postgres") {
      const schemas = (await rowsOf("information_schema.schemata")).map(({ schema_name }) => String(schema_name));
      expect(schemas.filter((schema) => schema.startsWith("deployment_"))).toEqual([]);
    }
  }, 300_000);
});

/** Of a process that may be deleted. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function folderOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}
