import { Annotation, END, type LangGraphRunnableConfig, Send, START, StateGraph } from "@langchain/langgraph";
import { delayFor, pause } from "../shared/pause.ts";
import { corpus, wordsOf } from "./corpus.ts";
import { type Finding, study } from "./study.ts";

const State = Annotation.Root({
  question: Annotation<string>(),
  topics: Annotation<string[]>(),
  // Each branch appends its finding. `null` clears the list, so that a second
  // question on the same thread starts with no findings.
  findings: Annotation<Finding[], Finding[] | null>({
    reducer: (before, added) => (added === null ? [] : before.concat(added)),
    default: () => [],
  }),
  report: Annotation<string>(),
});

/** The input of a run; forms show only these fields. */
const Input = Annotation.Root({ question: State.spec.question });

function plan({ question }: typeof State.State, config: LangGraphRunnableConfig): typeof State.Update {
  if (!question) throw new Error('The input needs a question, for example {"question": "How do bees find food?"}');
  const words = wordsOf(question);
  const matching = corpus.filter((topic) => topic.words.some((word) => words.has(word)));
  const topics = (matching.length > 0 ? matching : corpus).map((topic) => topic.name);
  config.writer?.({ step: "plan", done: topics.length, total: topics.length, topics });
  return { topics, findings: null };
}

/** One parallel branch per topic. */
function fanOut({ question, topics }: typeof State.State): Send[] {
  return topics.map((topic) => new Send("study", { topic, asked: question }));
}

async function write(state: typeof State.State, config: LangGraphRunnableConfig): Promise<typeof State.Update> {
  const parts = [`# ${state.question}`];
  for (const { topic, summary } of state.findings) {
    await pause(delayFor(config, 60), config.signal);
    parts.push(`## ${topic}`, summary);
    config.writer?.({ step: "write", topic, done: (parts.length - 1) / 2, total: state.findings.length });
  }
  return { report: parts.join("\n\n") };
}

// Compiled without a checkpointer, because the server has its own.
export const graph = new StateGraph({ stateSchema: State, input: Input })
  .addNode("plan", plan)
  .addNode("study", study)
  .addNode("write", write)
  .addEdge(START, "plan")
  .addConditionalEdges("plan", fanOut, ["study"])
  .addEdge("study", "write")
  .addEdge("write", END)
  .compile();
