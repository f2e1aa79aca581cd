import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import {
  Annotation,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { ReciteModel } from "../streams/model.ts";

type State = typeof MessagesAnnotation.State;

const textOf = (message: BaseMessage | undefined): string =>
  typeof message?.content === "string" ? message.content : JSON.stringify(message?.content);

const lastText = ({ messages }: State): string => textOf(messages.at(-1));

const oneNode = (node: (state: State, config: LangGraphRunnableConfig) => unknown) =>
  new StateGraph(MessagesAnnotation)
    .addNode("answer", node as never)
    .addEdge(START, "answer")
    .addEdge("answer", END)
    .compile();

/** Repeats the content of the message; a list as JSON. */
export const echo = oneNode((state) => ({ messages: [new AIMessage(`You said: ${lastText(state)}`)] }));

/** Three tokens. */
export const talk = oneNode(async ({ messages }, config) => ({
  messages: [await new FakeListChatModel({ responses: ["yes"] }).invoke(messages, config)],
}));

/** Asks for an object, then with a text, and answers with both answers. */
export const ask = oneNode(() => {
  const order = interrupt({ question: "Which order?" });
  const reason = interrupt("Why?");
  return { messages: [new AIMessage(JSON.stringify([order, reason]))] };
});

/** Asks for the path of a file, and waits for the file. */
export const ask_door = oneNode(async (_, { signal }) => {
  const door = String(interrupt("Which door?"));
  while (!existsSync(door)) await pause(5, undefined, { signal });
  return { messages: [new AIMessage("The door is open.")] };
});

/** Asks two questions at the same time. */
export const both = new StateGraph(
  Annotation.Root({
    ...MessagesAnnotation.spec,
    answers: Annotation<unknown[]>({ reducer: (before, added) => [...before, ...added], default: () => [] }),
  }),
)
  .addNode("left", () => ({ answers: [interrupt("Left?")] }))
  .addNode("right", () => ({ answers: [interrupt("Right?")] }))
  .addNode("end", ({ answers }) => ({ messages: [new AIMessage(JSON.stringify(answers))] }))
  .addEdge(START, "left")
  .addEdge(START, "right")
  .addEdge(["left", "right"], "end")
  .addEdge("end", END)
  .compile();

/** Stops before its second node. */
export const breaks = new StateGraph(MessagesAnnotation)
  .addNode("first", () => ({ messages: [new AIMessage("first")] }))
  .addNode("second", () => ({ messages: [new AIMessage("second")] }))
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", END)
  .compile({ interruptBefore: ["second"] });

/** Streams "yes", then waits for the file whose path is the message, or until the run is cancelled. */
export const waits = new StateGraph(MessagesAnnotation)
  .addNode("begin", async ({ messages }, config) => ({
    messages: [await new FakeListChatModel({ responses: ["yes"] }).invoke(messages, config)],
  }))
  .addNode("wait", async ({ messages }, { signal }: LangGraphRunnableConfig) => {
    const door = textOf(messages.findLast((message) => message.getType() === "human"));
    while (!existsSync(door)) await pause(5, undefined, { signal });
    return { messages: [new AIMessage("The door is open.")] };
  })
  .addEdge(START, "begin")
  .addEdge("begin", "wait")
  .addEdge("wait", END)
  .compile();

/** Streams a message, and takes its graph host with it the first time that the file exists. */
export const dies = oneNode(async (state, config) => {
  const door = lastText(state);
  const answer = await new ReciteModel().invoke([new AIMessage("")], config);
  while (!existsSync(door)) await pause(5, undefined, { signal: config.signal });
  if (!existsSync(`${door}-died`)) {
    writeFileSync(`${door}-died`, "");
    process.exit(1);
  }
  return { messages: [answer] };
});

export const fails = oneNode(() => {
  throw new RangeError("There is no such color.");
});

/** Adds no message. */
export const silent = oneNode(() => ({}));

/** A long answer: the state is parsed in another thread. */
export const long = oneNode(() => ({ messages: [new AIMessage("x".repeat(400_000))] }));
