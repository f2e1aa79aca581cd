import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { adds, Steps } from "./chain.ts";

const Seen = Annotation.Root({ seen: Annotation<Record<string, unknown>>() });

/** What a node is told besides its state; LangGraph's own keys left out. */
function look(_: typeof Seen.State, config: LangGraphRunnableConfig): typeof Seen.Update {
  const own = Object.entries(config.configurable ?? {}).filter(([key]) => !key.startsWith("__"));
  const { context, metadata, tags, recursionLimit } = config;
  return { seen: { configurable: Object.fromEntries(own), context, metadata, tags, recursionLimit } };
}

export const inspect = new StateGraph(Seen).addNode("look", look).addEdge(START, "look").addEdge("look", END).compile();

/** A graph that is built from the configuration: its answer is the configured word. */
export function factory(config: { configurable?: { word?: string } }) {
  const word = config.configurable?.word ?? "nothing";
  return new StateGraph(Steps).addNode("say", adds(word)).addEdge(START, "say").addEdge("say", END).compile();
}
