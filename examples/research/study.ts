import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { delayFor, pause } from "../shared/pause.ts";
import { corpus, wordsOf } from "./corpus.ts";

export interface Finding {
  topic: string;
  summary: string;
}

// Several of these subgraphs run in parallel. Keys that the parent has, too, are
// written back to it, so only `findings` is shared: it has a reducer there.
const State = Annotation.Root({
  topic: Annotation<string>(),
  asked: Annotation<string>(),
  facts: Annotation<string[]>(),
  findings: Annotation<Finding[]>(),
});

async function search({ topic }: typeof State.State, config: LangGraphRunnableConfig): Promise<typeof State.Update> {
  const facts = corpus.find((entry) => entry.name === topic)?.facts ?? [];
  for (const index of facts.keys()) {
    await pause(delayFor(config, 60), config.signal);
    config.writer?.({ step: "search", topic, done: index + 1, total: facts.length });
  }
  return { facts };
}

/** Selects the two facts that have the most words in common with the question. */
function summarise({ topic, asked, facts }: typeof State.State): typeof State.Update {
  const words = wordsOf(asked);
  const shared = (fact: string) => [...wordsOf(fact)].filter((word) => words.has(word)).length;
  const best = facts.toSorted((a, b) => shared(b) - shared(a)).slice(0, 2);
  return { findings: [{ topic, summary: best.join(" ") }] };
}

export const study = new StateGraph(State)
  .addNode("search", search)
  .addNode("summarise", summarise)
  .addEdge(START, "search")
  .addEdge("search", "summarise")
  .addEdge("summarise", END)
  .compile();
