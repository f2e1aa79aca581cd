import type { BaseMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import {
  Annotation,
  type BaseChannel,
  type Command,
  type CompiledStateGraph,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";

/** A file or a folder. */
interface Entry {
  name: string;
  /** Of a folder. */
  children?: Entry[];
}
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type Endless<T> = { value: T; next?: Endless<T[]> };
class Connection {
  open = true;
}

const Types = Annotation.Root({
  /** How many. */
  count: Annotation<number>,
  choice: Annotation<"a" | "b" | null>,
  mixed: Annotation<1 | "one" | boolean>,
  at: Annotation<Date>,
  pair: Annotation<[string, number?]>,
  rest: Annotation<readonly [string, ...number[]]>,
  scores: Annotation<Record<string, number>>,
  id: Annotation<string & { __brand: "id" }>,
  picked: Annotation<Pick<Entry, "name"> & { size?: number }>,
  last: Annotation<BaseMessage | undefined>,
  anything: Annotation<unknown>,
  untyped: Annotation,
});
export const types = new StateGraph(Types)
  .addNode("a", () => ({}))
  .addEdge(START, "a")
  .compile();

const Inexpressible = Annotation.Root({
  callback: Annotation<(value: string) => void>,
  nested: Annotation<{ callback(): void; symbol: symbol; connection: Connection; tags: Set<string>; label: string }>,
});
export const inexpressible = new StateGraph(Inexpressible)
  .addNode("a", () => ({}))
  .addEdge(START, "a")
  .compile();

const Recursive = Annotation.Root({
  root: Annotation<Entry>,
  json: Annotation<Json>,
  endless: Annotation<Endless<string>>,
});
export const recursive = new StateGraph(Recursive)
  .addNode("a", () => ({}))
  .addEdge(START, "a")
  .compile();

const Reduced = Annotation.Root({
  total: Annotation<number, { add: number } | null>({
    reducer: (total, update) => total + (update?.add ?? 0),
    default: () => 0,
  }),
});
export const reduced = new StateGraph(Reduced)
  .addNode("a", () => ({}))
  .addEdge(START, "a")
  .compile();

const State = Annotation.Root({
  question: Annotation<string>,
  answer: Annotation<string>,
  steps: Annotation<string[]>,
});
const Input = Annotation.Root({ question: State.spec.question });
const Output = Annotation.Root({ answer: State.spec.answer });
const Config = Annotation.Root({
  /** Which model answers. */
  model: Annotation<"small" | "large">,
});
export const separate = new StateGraph({ stateSchema: State, input: Input, output: Output }, Config)
  .addNode("a", () => ({ answer: "" }))
  .addEdge(START, "a")
  .compile();

const messages = () => new StateGraph(MessagesAnnotation).addNode("a", () => ({})).addEdge(START, "a");
export const chat = messages().compile();
export const uncompiled = messages();
export const promised = Promise.resolve(chat);
export const factory = (config: { configurable?: object }) => (config.configurable ? messages() : messages());
export const asyncFactory = async () => chat;
export const agent = { graph: chat, name: "agent" };
/** As LangChain's createAgent() types it. */
interface Agent {
  // biome-ignore lint/suspicious/noExplicitAny: as it is there
  graph: CompiledStateGraph<any, any, any, any, { topic: BaseChannel<string> }>;
  invoke(input: { topic: string } | Command | null, options?: { context?: { user: string } }): Promise<unknown>;
}
export const typedAgent = {} as Agent;
export default { inDefault: chat };
export const prebuilt = createReactAgent({ llm: new FakeListChatModel({ responses: [] }), tools: [] });

// biome-ignore lint/suspicious/noExplicitAny: the type that says nothing
export const untyped: any = {};
