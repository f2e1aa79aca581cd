import { describe, expect, it } from "vitest";
import { startReceiver } from "../../support/webhook-receiver.ts";
import { httpError, type NewClient } from "./support.ts";

export function webhookScenarios(newClient: NewClient): void {
  describe("webhooks", () => {
    it("are called when a run ends", async () => {
      const { runs, threads } = newClient();
      const receiver = await startReceiver();
      const { thread_id } = await threads.create();
      await runs.wait(thread_id, "echo", { input: { text: "hi" }, webhook: receiver.at("thread") });
      expect((await receiver.nth("thread")).body).toMatchObject({ thread_id, values: { echo: "hi" } });
      const { run_id } = await runs.create(null, "echo", { input: { text: "hi" }, webhook: receiver.at("stateless") });
      expect((await receiver.nth("stateless")).body).toMatchObject({ run_id, status: "success" });
      const refused = runs.create(thread_id, "echo", { webhook: "https://10.0.0.1" });
      await expect(refused).rejects.toEqual(httpError(422, "public internet"));
      await receiver.close();
    });
  });
}
