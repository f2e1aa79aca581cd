import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openData } from "../../src/app/compose/open-data.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { startService } from "../support/service.ts";

/** Finding 9 of the security review: everybody on the machine could read the database. */

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe("the files of a service", () => {
  it("are not readable for other users, while it runs and afterwards", async () => {
    const service = await startService({ database: "sqlite", config: "test/graphs/scenarios/langgraph.json" });
    const folder = service.database.data_dir;
    await service.request("POST", "/threads", {});
    await service.request("POST", "/api/v1/datasets", { name: "a" });
    const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "threadmill.db",
        "threadmill.db-wal",
        "experiments.db",
        "lock.db",
        "owner.pid",
        "encryption.keys",
      ]),
    );
    expect(files.map(({ name }) => [name, modeOf(join(folder, name))])).toEqual(files.map(({ name }) => [name, "600"]));
    expect(modeOf(folder)).toBe("700");
    await service.stop();
  });

  describe("of an earlier version", () => {
    let folder: string;
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), "threadmill-files-"));
      await open();
      chmodSync(folder, 0o755);
      for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644);
    });
    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    const open = async (more: { share_data?: boolean } = {}) => {
      const place = { data_dir: folder, database_url: undefined, share_data: false, ...more };
      await (await openData(place, "normal", createLog("silent"))).close();
    };

    it.each([{ share_data: false }, { share_data: true }])("become unreadable at the next start (%j)", async (more) => {
      await open(more);
      expect(modeOf(folder)).toBe("700");
      for (const name of readdirSync(folder)) expect([name, modeOf(join(folder, name))]).toEqual([name, "600"]);
    });

    it("become unreadable, but not a folder with other content", async () => {
      writeFileSync(join(folder, "notes.txt"), "mine", { mode: 0o644 });
      await open();
      expect([modeOf(folder), modeOf(join(folder, "notes.txt"))]).toEqual(["755", "644"]);
      expect(modeOf(join(folder, "threadmill.db"))).toBe("600");
    });
  });
});
