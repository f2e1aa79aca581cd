import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openData } from "../../src/app/compose/open-data.ts";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { hasPostgresServer, PostgresServer } from "./postgres-server.ts";

describe.runIf(hasPostgresServer())("a process on a Postgres with few connections", () => {
  let postgres: PostgresServer;
  let project: TestProject;
  beforeAll(async () => {
    project = createProject({});
    postgres = await PostgresServer.start();
  }, 60_000);
  afterAll(() => {
    postgres.remove();
    project.drop();
  });

  /** Three of the connections are reserved for superusers, and the process has opened one or two when it counts. */
  it.each([
    [36, {}, []],
    [33, {}, [{ free: expect.any(Number), needed: 31 }]],
    [16, { only: "agents" }, []],
    [13, { only: "agents" }, [{ free: expect.any(Number), needed: 11 }]],
    [21, { role: "worker" }, []],
    [18, { role: "worker" }, [{ free: expect.any(Number), needed: 16 }]],
  ] as const)(
    "of %d warns if they are fewer than its own and those of its workers (%j)",
    async (max_connections, part, expected) => {
      postgres.down("fast");
      postgres.up({ max_connections });
      const warnings: unknown[] = [];
      const log: Log = Object.assign(createLog("silent"), { warn: (fields: object) => warnings.push(fields) });
      const location = { data_dir: project.folder, database_url: postgres.url, share_data: false, ...part };
      await (await openData(location, "normal", log)).close();
      expect(warnings).toEqual(expected);
    },
  );
});
