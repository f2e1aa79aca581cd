import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { adds, Steps } from "./chain.ts";

const Answers = Annotation.Root({
  ...Steps.spec,
  answers: Annotation<Record<string, unknown>>({
    reducer: (before, added) => ({ ...before, ...added }),
    default: () => ({}),
  }),
});

/** Asks twice in one node, which therefore starts three times. */
function askTwice() {
  const name = interrupt({ question: "name?" });
  const age = interrupt({ question: "age?", name });
  return { answers: { name, age }, steps: ["ask"] };
}

export const gate = new StateGraph(Answers)
  .addNode("open", adds("open"))
  .addNode("ask", askTwice)
  .addNode("close", adds("close"))
  .addEdge(START, "open")
  .addEdge("open", "ask")
  .addEdge("ask", "close")
  .addEdge("close", END)
  .compile();

const asks = (name: string) => () => ({ answers: { [name]: interrupt({ question: name }) } });

/** Two branches ask at the same time; `join` runs when both have their answer. */
export const parallel = new StateGraph(Answers)
  .addNode("left", asks("left"))
  .addNode("right", asks("right"))
  .addNode("join", adds("join"))
  .addEdge(START, "left")
  .addEdge(START, "right")
  .addEdge(["left", "right"], "join")
  .addEdge("join", END)
  .compile();
