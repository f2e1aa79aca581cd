import { describe, expect, it } from "vitest";
import { dataOf, gather, httpError, type NewClient, UUID, unique } from "./support.ts";

export function statelessScenarios(newClient: NewClient): void {
  describe("stateless runs", () => {
    it("are waited for, and leave nothing behind", async () => {
      const { runs, threads } = newClient();
      let created_run: { run_id: string; thread_id?: string } | undefined;
      const onRunCreated = (run: { run_id: string; thread_id?: string }) => {
        created_run = run;
      };
      expect(await runs.wait(null, "echo", { input: { text: "hi" }, onRunCreated })).toEqual({
        text: "hi",
        echo: "hi",
        messages: [],
      });
      expect(created_run).toEqual({ run_id: UUID, thread_id: undefined });
      const { thread_id } = await runs.create(null, "echo", { input: { text: "hi" } });
      await expect(threads.get(thread_id)).rejects.toEqual(httpError(404, "not found"));
      expect(await threads.search({ ids: [thread_id] })).toEqual([]);
    });

    it("that fail make the client throw", async () => {
      const wait = newClient().runs.wait(null, "failing", { input: { color: "octarine" } });
      await expect(wait).rejects.toThrow('RangeError: There is no color "octarine".');
    });

    it("are streamed, and can be read again from the start", async () => {
      const { runs } = newClient();
      let run_id: string | undefined;
      const onRunCreated = (run: { run_id: string }) => {
        run_id = run.run_id;
      };
      const payload = { input: {}, streamMode: ["updates", "values"] as const, streamSubgraphs: true, onRunCreated };
      const events = await gather(runs.stream(null, "agent", payload as never));
      expect(events[0]).toEqual({ id: "1", event: "metadata", data: { run_id, attempt: 1 } });
      expect(dataOf(events, "values").at(-1)).toMatchObject({
        trail: ["begin", "look", "dig", "fill", "finish plainly"],
      });
      const again = await gather(runs.joinStream(null, run_id as string, { lastEventId: "-1" }));
      expect(again).toEqual(events);
    });

    it("keep their thread on request", async () => {
      const { runs, threads } = newClient();
      const metadata = { key: unique() };
      // The client sends it, and its types do not know it.
      await runs.wait(null, "echo", { input: { text: "hi" }, onCompletion: "keep", metadata } as never);
      const kept = await threads.search({ metadata });
      expect(kept).toMatchObject([{ thread_id: UUID, status: "idle", values: { text: "hi", echo: "hi" } }]);
      expect(await runs.list(kept[0]?.thread_id as string)).toMatchObject([{ status: "success" }]);
    });

    it("are created in batches, and returned in the order of the request", async () => {
      const { runs } = newClient();
      const bodies = [
        { assistantId: "echo", input: { text: "one" } },
        { assistantId: "agent", input: {}, metadata: { key: "value" } },
        { assistantId: "echo", input: { text: "three" } },
      ];
      const batch = await runs.createBatch(bodies as never);
      const created = batch as unknown as { run_id: string; metadata: { key?: string } }[];
      expect(created).toMatchObject([
        { run_id: UUID, status: "pending", kwargs: { input: { text: "one" } } },
        { run_id: UUID, status: "pending", metadata: { key: "value" } },
        { run_id: UUID, status: "pending", kwargs: { input: { text: "three" } } },
      ]);
      const last = async (run_id: string) =>
        dataOf(await gather(runs.joinStream(null, run_id, { lastEventId: "-1" })), "values").at(-1);
      expect(await last(created[0]?.run_id as string)).toMatchObject({ echo: "one" });
      expect(await last(created[2]?.run_id as string)).toMatchObject({ echo: "three" });
    });

    it("of a batch are refused together when one of them is invalid", async () => {
      const batch = newClient().runs.createBatch([
        { assistantId: "echo", input: {} },
        { assistantId: "nobody", input: {} },
      ]);
      await expect(batch).rejects.toEqual(httpError(404, "nobody"));
    });
  });
}
