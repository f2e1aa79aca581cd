import { FakeListChatModel } from "@langchain/core/utils/testing";
import {
  Annotation,
  END,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { traceable } from "langsmith/traceable";

const search = traceable(async (query: string) => [`a page about ${query}`], { name: "search", run_type: "tool" });

/** Searches with a function of LangSmith's client, and asks a model. */
export const agent = new StateGraph(MessagesAnnotation)
  .addNode("answer", async ({ messages }) => {
    await search("tides");
    return { messages: [await new FakeListChatModel({ responses: ["yes"] }).invoke(messages)] };
  })
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();

const Values = Annotation.Root({ odd: Annotation<unknown>(), many: Annotation<number>(), chars: Annotation<number>() });

const Handlers = Annotation.Root({ handlers: Annotation<string[]>() });

/** Returns the names of the tracers among the callbacks of its node. */
export const handlers = new StateGraph(Handlers)
  .addNode("read", (_: unknown, { callbacks }: LangGraphRunnableConfig) => {
    const all = Array.isArray(callbacks) ? callbacks : (callbacks?.handlers ?? []);
    const names = all.map((handler) => ("name" in handler ? String(handler.name) : ""));
    return { handlers: names.filter((name) => name.includes("langchain_tracer")) };
  })
  .addEdge(START, "read")
  .addEdge("read", END)
  .compile();

const circular: Record<string, unknown> = { name: "circle" };
circular.self = circular;

const step = traceable(async (index: number) => index, { name: "step" });

const large = traceable(async (text: string) => text.length, { name: "large" });

/** Passes values to traced functions that JSON does not support, `many` of them, and three of `chars` characters. */
export const odd = new StateGraph(Values)
  .addNode("pass", async ({ many = 0, chars = 0 }) => {
    for (let index = 0; index < 3; index++) await large("x".repeat(chars));
    await traceable(async (_: unknown) => 10n, { name: "odd" })({ circular, big: 7n, date: new Date(0) });
    for (let index = 0; index < many; index++) await step(index);
    return { odd: "done" };
  })
  .addEdge(START, "pass")
  .addEdge("pass", END)
  .compile();

/** The config that the nodes of a run see. */
export const factory = (config: LangGraphRunnableConfig) => {
  throw new Error(`no graph for ${config.configurable?.user_id}`);
};
