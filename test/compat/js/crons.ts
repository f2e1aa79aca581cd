import { describe, expect, it } from "vitest";
import { httpError, type NewClient, UUID, unique } from "./support.ts";

export function cronScenarios(newClient: NewClient): void {
  describe("crons", () => {
    it("are created, searched, counted, changed and deleted", async () => {
      const { crons, threads } = newClient();
      const metadata = { key: unique() };
      const options = { schedule: "0 9 * * 1-5", timezone: "Europe/Berlin", input: { text: "hi" }, metadata };
      // The type of the result is that of a run, but the server returns a cron.
      const { cron_id } = (await crons.create("echo", options)) as unknown as { cron_id: string };
      expect(cron_id).toEqual(UUID);
      const { thread_id } = await threads.create();
      await crons.createForThread(thread_id, "echo", { ...options, enabled: false });
      expect(await crons.search({ metadata, threadId: thread_id })).toMatchObject([{ thread_id, enabled: false }]);
      expect(await crons.count({ metadata, assistantId: "echo" })).toBe(2);
      const changed = await crons.update(cron_id, { schedule: "0 10 * * *", enabled: false });
      expect(changed).toMatchObject({
        cron_id,
        schedule: "0 10 * * *",
        next_run_date: null,
        timezone: "Europe/Berlin",
      });
      await crons.delete(cron_id);
      await expect(crons.update(cron_id, {})).rejects.toEqual(httpError(404, "not found"));
      await threads.delete(thread_id);
      expect(await crons.count({ metadata })).toBe(0);
    });
  });
}
