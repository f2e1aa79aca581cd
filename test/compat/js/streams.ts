import { describe, expect, it } from "vitest";
import { type ClientEvent, dataOf, gather, type NewClient, namesOf, UUID } from "./support.ts";

const ASK = { input: { messages: [{ role: "user", content: "Where is my order 1042?" }] } };
const ANSWER = "Order 1042 (walking boots) is shipped. It should arrive on Thursday.";
const BEES = { input: { question: "How do bees find food?" } };

export function streamScenarios(newClient: NewClient): void {
  const newThread = async () => (await newClient().threads.create()).thread_id;

  /** The events of a new run on a new thread. */
  const stream = async (assistant: string, payload: object): Promise<ClientEvent[]> =>
    gather(newClient().runs.stream(await newThread(), assistant, payload));

  describe("streams", () => {
    it("carry the values after each step, after the run's id", async () => {
      const events = await stream("echo", { input: { text: "hi" }, streamMode: "values" });
      expect(events).toEqual([
        { id: "1", event: "metadata", data: { run_id: UUID, attempt: 1 } },
        { id: "2", event: "values", data: { text: "hi", messages: [] } },
        { id: "3", event: "values", data: { text: "hi", echo: "hi", messages: [] } },
      ]);
    });

    it("carry the update of each node", async () => {
      const events = await stream("agent", { input: {}, streamMode: "updates" });
      expect(namesOf(events)).toEqual(["metadata", "updates"]);
      expect(dataOf(events, "updates")).toEqual([
        { begin: { trail: ["begin"] } },
        { inner: { trail: ["begin", "look", "dig", "fill"] } },
        { finish: { trail: ["finish plainly"] } },
      ]);
    });

    it("carry message chunks, each with its origin", async () => {
      const events = await stream("support_desk", { ...ASK, streamMode: "messages-tuple" });
      expect(namesOf(events)).toEqual(["metadata", "messages"]);
      const pieces = dataOf(events, "messages") as [ClientEvent["data"], ClientEvent["data"]][];
      const last = pieces.at(-1)?.[0].id;
      const answer = pieces.filter(([{ id }]) => id === last);
      expect(answer.length).toBeGreaterThan(5);
      expect(answer.map(([{ content }]) => content).join("")).toBe(ANSWER);
      expect(answer.every(([{ type }, { langgraph_node }]) => type === "ai" && langgraph_node === "agent")).toBe(true);
      expect(pieces.some(([{ type, name }]) => type === "tool" && name === "look_up_order")).toBe(true);
    });

    it("carry messages that grow", async () => {
      const events = await stream("support_desk", { ...ASK, streamMode: "messages" });
      expect(namesOf(events).toSorted()).toEqual([
        "messages/complete",
        "messages/metadata",
        "messages/partial",
        "metadata",
      ]);
      expect(dataOf(events, "messages/partial").at(-1)).toMatchObject([{ type: "ai", content: ANSWER }]);
      expect(dataOf(events, "messages/complete").at(-1)).toMatchObject([{ type: "ai", content: ANSWER }]);
    });

    it("carry what a graph writes itself", async () => {
      const events = await stream("research", { ...BEES, streamMode: "custom" });
      expect(namesOf(events)).toEqual(["metadata", "custom"]);
      expect(dataOf(events, "custom")[0]).toEqual({ step: "plan", done: 2, total: 2, topics: ["dance", "honey"] });
    });

    it("carry several modes in the order in which things happen", async () => {
      const events = await stream("echo", { input: { text: "hi" }, streamMode: ["values", "updates", "tasks"] });
      const names = ["metadata", "values", "tasks", "updates", "tasks", "values"];
      expect(events.map(({ event }) => event)).toEqual(names);
      expect(events.map(({ id }) => id)).toEqual(names.map((_, i) => String(i + 1)));
    });

    it("carry the events of subgraphs under their namespace, when asked", async () => {
      const with_ = await stream("research", { ...BEES, streamMode: ["updates", "custom"], streamSubgraphs: true });
      const nested = with_.filter(({ event }) => event.includes("|"));
      expect(nested.every(({ event }) => /^(updates|custom)\|study:[0-9a-f-]{36}$/.test(event))).toBe(true);
      expect(new Set(nested.map(({ event }) => event.split("|")[1])).size).toBe(2);
      expect(nested.filter(({ event }) => event.startsWith("custom|"))).toHaveLength(6);
      const without = await stream("research", { ...BEES, streamMode: ["updates", "custom"] });
      expect(without.filter(({ event }) => event.includes("|"))).toEqual([]);
    });

    it("end with the error of a graph that fails", async () => {
      const events = await stream("failing", { input: { color: "octarine" }, streamMode: ["values"] });
      expect(events.map(({ event }) => event)).toEqual(["metadata", "values", "values", "error"]);
      expect(events.at(-1)?.data).toEqual({ error: "RangeError", message: 'There is no color "octarine".' });
    });

    it("can be read again from the start, any number of times", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      const events = await gather(
        runs.stream(thread_id, "support_desk", { ...ASK, streamMode: ["values", "messages-tuple"] }),
      );
      const again = () => gather(runs.joinStream(thread_id, events[0]?.data.run_id, { lastEventId: "-1" }));
      expect(await again()).toEqual(events);
      expect(await again()).toEqual(events);
    });

    it("can be joined from the start while they continue", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      const { run_id } = await runs.create(thread_id, "research", {
        ...BEES,
        streamMode: ["custom"],
        streamSubgraphs: true,
      });
      const joined = await gather(runs.joinStream(thread_id, run_id, { lastEventId: "-1" }));
      expect(joined[0]).toMatchObject({ id: "1", event: "metadata", data: { run_id } });
      expect(joined.map(({ id }) => Number(id))).toEqual(joined.map((_, i) => i + 1));
      expect(dataOf(joined, "custom").at(-1)).toMatchObject({ step: "write" });
    });

    it("continue after the last event that was received", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      const events = await gather(runs.stream(thread_id, "agent", { input: {}, streamMode: "updates" }));
      const run_id = events[0]?.data.run_id as string;
      const seenUpTo = (lastEventId: string) => gather(runs.joinStream(thread_id, run_id, { lastEventId }));
      expect(await seenUpTo("2")).toEqual(events.slice(2));
      expect(await seenUpTo(String(events.length))).toEqual([]);
    });

    it("are joined for some of their modes", async () => {
      const { runs } = newClient();
      const thread_id = await newThread();
      const payload = { ...BEES, streamMode: ["values", "custom", "updates"] as const, streamSubgraphs: true };
      const events = await gather(runs.stream(thread_id, "research", payload as never));
      const join = (streamMode: unknown) =>
        gather(
          runs.joinStream(thread_id, events[0]?.data.run_id, { lastEventId: "-1", streamMode: streamMode as never }),
        );
      const wanted = (modes: string[]) => events.filter(({ event }) => modes.includes(event.split("|")[0] as string));
      expect(await join("custom")).toEqual(wanted(["metadata", "custom"]));
      expect(await join(["custom", "updates"])).toEqual(wanted(["metadata", "custom", "updates"]));
    });
  });
}
