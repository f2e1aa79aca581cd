import { Annotation, END, START, StateGraph } from "@langchain/langgraph";

// A graph whose second node fails.

const State = Annotation.Root({ color: Annotation<string>(), seen: Annotation<boolean>() });

export const graph = new StateGraph(State)
  .addNode("look", () => ({ seen: true }))
  .addNode("paint", ({ color }) => {
    throw new RangeError(`There is no color "${color}".`);
  })
  .addEdge(START, "look")
  .addEdge("look", "paint")
  .addEdge("paint", END)
  .compile();
