import type { ThreadStream } from "@langchain/langgraph-sdk/client";
import { describe, expect, it } from "vitest";
import { type NewClient, UUID } from "./support.ts";

const ASK = { messages: [{ role: "user", content: "Where is my order 1042?" }] };
const ANSWER = "Order 1042 (walking boots) is shipped. It should arrive on Thursday.";
const REFUND = { messages: [{ role: "user", content: "refund order 1042" }] };

/** Client methods for streams of threads, over server-sent events and WebSockets. */
export function threadProtocolScenarios(newClient: NewClient): void {
  describe.each(["sse", "websocket"] as const)("streams of threads over %s", (transport) => {
    const open = (assistantId: string, thread_id?: string): ThreadStream => {
      const options = { assistantId, transport };
      const { threads } = newClient();
      return thread_id === undefined ? threads.stream(options) : threads.stream(thread_id, options);
    };

    async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
      const all: T[] = [];
      for await (const item of items) all.push(item);
      return all;
    }

    it("carry message chunks, tool calls and the output of a run", async () => {
      const thread = open("support_desk");
      const texts = (async () => {
        const found: string[][] = [];
        for await (const message of thread.messages) found.push(await collect(message.text));
        return found;
      })();
      const tools = (async () => {
        // The client yields each call twice: when it starts, and when it ends.
        const found = new Map<string, unknown>();
        for await (const { name, output } of thread.toolCalls) found.set(name, await output);
        return [...found];
      })();
      expect(await thread.run.start({ input: ASK })).toEqual({ run_id: UUID });
      const output = (await thread.output) as { messages: { content: unknown }[] };
      const pieces = await texts;
      expect(pieces.map((text) => text.join("")).at(-1)).toBe(ANSWER);
      expect(pieces.at(-1)?.length).toBeGreaterThan(3);
      expect(await tools).toEqual([["look_up_order", expect.anything()]]);
      expect(JSON.stringify(output.messages.at(-1)?.content)).toContain(ANSWER);
      await thread.close();
    });

    it("pause for a response, and continue with it", async () => {
      const thread = open("support_desk");
      const requested = await thread.subscribe(["input", "lifecycle"]);
      await thread.run.start({ input: REFUND });
      for await (const { method, params } of requested)
        if (method === "lifecycle" && params.namespace.length === 0 && params.data.event === "interrupted") break;
      expect(thread.interrupts).toMatchObject([{ payload: { question: expect.stringContaining("Refund $129.00") } }]);
      const [{ interruptId, namespace }] = thread.interrupts as unknown as [
        { interruptId: string; namespace: string[] },
      ];
      await thread.input.respond({ namespace, interrupt_id: interruptId, response: { decision: "approve" } });
      // Not `thread.output`: the client settles it at an interrupt too, unless the response precedes a timer of 0 ms.
      const { runs } = newClient();
      const [latest] = await runs.list(thread.threadId);
      const values = await runs.join(thread.threadId, (latest as { run_id: string }).run_id);
      expect(JSON.stringify(values)).toContain("is on its way back to you");
      await thread.close();
    });

    it("show each run of a thread once to every client that joins", async () => {
      const first = open("echo");
      await first.run.start({ input: { text: "one" } });
      expect(await first.output).toMatchObject({ echo: "one" });
      const second = open("echo", first.threadId);
      await second.run.start({ input: { text: "two" } });
      expect(await second.output).toMatchObject({ echo: "two" });
      await Promise.all([first.close(), second.close()]);
    });

    it("name the subgraphs of a run", async () => {
      const thread = open("research");
      const names = (async () => (await collect(thread.subgraphs)).map(({ name }) => name))();
      await thread.run.start({ input: { question: "How do bees find food?" } });
      await thread.output;
      await thread.close();
      expect(new Set(await names)).toEqual(expect.objectContaining(new Set(["study"])));
    });

    it("end with the error of the run", async () => {
      const thread = open("failing");
      const lifecycle = await thread.subscribe(["lifecycle"]);
      await thread.run.start({ input: {} });
      const errors: unknown[] = [];
      for await (const { params } of lifecycle) if (params.data.event === "failed") errors.push(params.data.error);
      expect(errors).toContain('There is no color "undefined".');
      await thread.close();
    });

    it("refuse commands that cannot be executed", async () => {
      const thread = open("nobody");
      await expect(thread.run.start({ input: {} })).rejects.toMatchObject({ code: "invalid_argument" });
      await thread.close();
    });
  });
}
