import { describe, expect, it } from "vitest";
import { dataOf, gather, type NewClient } from "./support.ts";

const REFUND = { input: { messages: [{ role: "user", content: "refund order 1042" }] } };
const QUESTION = "Refund $129.00 for order 1042 (walking boots)?";

export function interruptScenarios(newClient: NewClient): void {
  const newThread = async () => (await newClient().threads.create()).thread_id;
  const lastMessage = (values: unknown): string =>
    (values as { messages: { content: string }[] }).messages.at(-1)?.content ?? "";

  describe("interrupts", () => {
    it("pause a run until it is resumed with an answer", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const paused = await runs.wait(thread_id, "support_desk", REFUND);
      const interrupt = { id: expect.any(String), value: expect.objectContaining({ question: QUESTION }) };
      expect(paused).toHaveProperty("__interrupt__", [interrupt]);
      expect(lastMessage(paused)).toContain("I am asking a colleague");
      const thread = await threads.get(thread_id);
      expect(thread.status).toBe("interrupted");
      expect(Object.values(thread.interrupts)).toEqual([[interrupt]]);
      expect((await runs.list(thread_id)).map(({ status }) => status)).toEqual(["interrupted"]);

      const done = await runs.wait(thread_id, "support_desk", { command: { resume: { decision: "approve" } } });
      expect(lastMessage(done)).toBe("Done: $129.00 for order 1042 is on its way back to you. Your receipt is R-1042.");
      expect(await threads.get(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
      expect((await runs.list(thread_id)).map(({ status }) => status)).toEqual(["success", "interrupted"]);
    });

    it("are answered by their id too", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      const paused = (await runs.wait(thread_id, "support_desk", REFUND)) as { __interrupt__: { id: string }[] };
      const resume = { [paused.__interrupt__[0]?.id as string]: { decision: "reject", reason: "Worn." } };
      const done = await runs.wait(thread_id, "support_desk", { command: { resume } });
      expect(lastMessage(done)).toBe("I am sorry, the refund for order 1042 was not approved. The reason: Worn.");
    });

    it("are raised again when the answer is invalid for the graph", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      await runs.wait(thread_id, "support_desk", REFUND);
      const again = await runs.wait(thread_id, "support_desk", { command: { resume: "perhaps" } });
      expect(again).toMatchObject({ __interrupt__: [{ value: { question: QUESTION, problem: expect.any(String) } }] });
    });

    it.each([["text"], [{ any: ["object", { at: "all" }] }], [[1, 2]], [true], [false], [0], [""], [null]])(
      "accept %o as an answer",
      async (resume) => {
        const { runs } = newClient();
        const thread_id = await newThread();
        await runs.wait(thread_id, "asking", { input: { question: "Why?" } });
        expect(await runs.wait(thread_id, "asking", { command: { resume } })).toEqual({
          question: "Why?",
          answer: resume,
        });
      },
    );

    it("are in the stream as __interrupt__, and in the thread's state", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const events = await gather(
        runs.stream(thread_id, "support_desk", { ...REFUND, streamMode: ["values", "updates"] }),
      );
      const shown = {
        __interrupt__: [{ id: expect.any(String), value: expect.objectContaining({ question: QUESTION }) }],
      };
      expect(dataOf(events, "updates").at(-1)).toEqual(shown);
      expect(dataOf(events, "values").at(-1)).toEqual(shown);
      const state = await threads.getState(thread_id);
      expect(state.next).toEqual(["approve"]);
      expect(state.tasks).toMatchObject([{ name: "approve", interrupts: shown.__interrupt__ }]);
      const resumed = runs.stream(thread_id, "support_desk", {
        command: { resume: { decision: "approve" } },
        streamMode: "updates",
      });
      const nodes = dataOf(await gather(resumed), "updates").map((update) => Object.keys(update as object)[0]);
      expect(nodes).toEqual(["approve", "tools", "agent"]);
    });

    it("at a breakpoint pause without a question, and continue without an answer", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const paused = await runs.wait(thread_id, "agent", { input: {}, interruptBefore: ["finish"] });
      expect(paused).toMatchObject({ trail: ["begin", "look", "dig", "fill"] });
      expect(await threads.get(thread_id)).toMatchObject({ status: "interrupted", interrupts: {} });
      expect(await threads.getState(thread_id)).toMatchObject({
        next: ["finish"],
        tasks: [{ name: "finish", interrupts: [] }],
      });
      expect(await runs.wait(thread_id, "agent", { input: null })).toMatchObject({
        trail: ["begin", "look", "dig", "fill", "finish plainly"],
      });
      expect((await threads.get(thread_id)).status).toBe("idle");
    });

    it("after every node pause a run that continues step by step", async () => {
      const { runs, threads } = newClient();
      const thread_id = await newThread();
      const nexts: string[][] = [];
      let input: Record<string, unknown> | null = {};
      do {
        await runs.wait(thread_id, "agent", { input, interruptAfter: "*" });
        nexts.push((await threads.getState(thread_id)).next);
        input = null;
      } while (nexts.at(-1)?.length && nexts.length < 9);
      expect(nexts).toEqual([["inner"], ["finish"], []]);
    });

    it("let a command change the state and choose the next node", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      await runs.wait(thread_id, "agent", { input: {}, interruptBefore: ["inner"] });
      const command = { update: { topic: "bees" }, goto: "finish" };
      const events = await gather(
        runs.stream(thread_id, "agent", { command: command as never, streamMode: ["updates"] }),
      );
      expect(dataOf(events, "updates")).toContainEqual({ finish: { trail: ["finish plainly"] } });
      expect((await newClient().threads.getState(thread_id)).values).toMatchObject({ topic: "bees" });
    });
  });
}
