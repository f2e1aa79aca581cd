import { AIMessage, BaseMessage, HumanMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import * as langgraph from "@langchain/langgraph";
import { withLangGraph } from "@langchain/langgraph/zod";
import { Client } from "@langchain/langgraph-sdk";
import { getLogger } from "@langchain/langgraph-sdk/logging";
import { z } from "zod";

const { Annotation, interrupt, MessagesAnnotation, StateGraph } = langgraph;

// At module level, as its documentation shows.
const logger = getLogger();
const client = new Client();

/** What the project's classes say of the messages: the names of those that each is an instance of. */
const classesOf = (messages: unknown[]): string[] =>
  messages.map((message) =>
    Object.entries({ BaseMessage, HumanMessage, AIMessage })
      .filter(([, Class]) => message instanceof Class)
      .map(([name]) => name)
      .join("+"),
  );

const Talk = Annotation.Root({ ...MessagesAnnotation.spec, seen: Annotation<string[]> });

/** Answers by a model that streams, and notes what the messages are instances of. */
export const talk = new StateGraph(Talk)
  .addNode("look", ({ messages }, config) => {
    config.writer?.({ looked: true });
    return { seen: classesOf(messages) };
  })
  .addNode("model", async ({ messages }) => {
    logger.info("model called", { messages: messages.length });
    return { messages: [await new FakeListChatModel({ responses: ["Hi!"] }).invoke(messages)] };
  })
  .addEdge("__start__", "look")
  .addEdge("look", "model")
  .compile();

/** Asks, and notes after the answer what the messages of before are instances of. */
export const ask = new StateGraph(Talk)
  .addNode("first", () => ({ messages: [new AIMessage({ id: "a", content: "before" })] }))
  .addNode("ask", ({ messages }) => {
    const answer: string = interrupt({ question: "go on?" });
    return { seen: [...classesOf(messages), answer] };
  })
  .addEdge("__start__", "first")
  .addEdge("first", "ask")
  .compile();

const Steps = Annotation.Root({ steps: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

const child = new StateGraph(Steps)
  .addNode("inner", () => ({ steps: [`inner ${interrupt("inner?")}`] }))
  .addEdge("__start__", "inner")
  .compile();

/** Has a subgraph that asks, and a node that only goto reaches. */
export const steps = new StateGraph(Steps)
  .addNode("start", () => ({ steps: ["start"] }), { ends: ["sent"] })
  .addNode("child", child)
  .addNode("sent", (input: { name?: string }) => ({ steps: [`sent ${input.name}`] }))
  .addEdge("__start__", "start")
  .addEdge("start", "child")
  .compile();

/** Two nodes of one step append to a channel that stores changes alone; undefined where the version has none. */
export const delta = "DeltaChannel" in langgraph ? deltaGraph(langgraph.DeltaChannel) : undefined;

function deltaGraph(Delta: typeof langgraph.DeltaChannel) {
  const append = (value: string[], updates: string[][]) => value.concat(...updates);
  const channel = () => new Delta<string[], string[]>(append, { initialValueFactory: () => [] });
  const State = Annotation.Root({ log: channel as never as ReturnType<typeof Annotation<string[]>> });
  const say = (word: string) => () => ({ log: [word] });
  // The order of their names, in which they are applied, is not that of their task ids, which are hashes.
  return new StateGraph(State)
    .addNode({ zebra: say("zebra"), ape: say("ape"), wolf: say("wolf"), bear: say("bear"), fox: say("fox") })
    .addNode("end", () => ({ log: [`end ${interrupt("end?")}`] }))
    .addEdge("__start__", "zebra")
    .addEdge("__start__", "ape")
    .addEdge("__start__", "wolf")
    .addEdge("__start__", "bear")
    .addEdge("__start__", "fox")
    .addEdge(["zebra", "ape", "wolf", "bear", "fox"], "end")
    .compile();
}

/** State defined with Zod, with an extra for its JSON schema. */
export const described = new StateGraph(
  z.object({ topic: withLangGraph(z.string(), { jsonSchemaExtra: { langgraph_type: "prompt" } } as never) }),
)
  .addNode("node", () => ({ topic: "x" }))
  .addEdge("__start__", "node")
  .compile();

/** Runs `talk` on a thread of its own, by a client that was given no URL. */
export const calls = new StateGraph(Annotation.Root({ mine: Annotation<unknown>, events: Annotation<string[]> }))
  .addNode("call", async () => {
    const { thread_id } = await client.threads.create();
    const events: string[] = [];
    const input = { messages: [{ role: "user", content: "hello" }] };
    for await (const { event } of client.runs.stream(thread_id, "talk", { input, streamMode: "updates" }))
      events.push(event);
    const { values } = await client.threads.getState<{ seen: string[] }>(thread_id);
    return { mine: values.seen, events };
  })
  .addEdge("__start__", "call")
  .compile();
