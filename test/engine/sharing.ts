import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { createDatabase, type DatabaseName, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";

export const LEASE_MS = 2_000;

/** A database for each test of a suite, and processes that share it; they are killed after the test. */
export function sharing(name: DatabaseName) {
  let database: TestDatabase;
  let started: ServerProcess[];
  beforeEach(async () => {
    database = await createDatabase(name);
    started = [];
  });
  afterEach(async () => {
    for (const server of started) {
      server.child.kill("SIGKILL");
      await server.ended;
    }
    await database.drop();
  });
  return {
    database: () => database,
    /** A file beside the database, which runs of test/graphs/shared wait for. */
    gate: (file: string) => join(database.data_dir, file),
    /** A process with leases of LEASE_MS that shares the database, unless `flags` say otherwise; perhaps by another way. */
    async start(
      config: string,
      env: Record<string, string> = {},
      flags = ["--share-data", "--only", "agents"],
      databaseUrl = database.url,
    ): Promise<ServerProcess> {
      const server = await startProcess({
        data: database.data_dir,
        ...(databaseUrl !== undefined && { databaseUrl }),
        port: await freePort(),
        config,
        flags,
        env: {
          THREADMILL_LEASE: `${LEASE_MS}ms`,
          THREADMILL_HEARTBEAT: "500ms",
          THREADMILL_HOSTS: "1",
          ...env,
        },
      });
      started.push(server);
      return server;
    },
  };
}
