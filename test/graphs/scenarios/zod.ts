import { END, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const State = z.object({
  topic: z.string().describe("What to write about."),
  length: z.number().optional(),
});

/** State defined with zod has JSON schemas at run time. */
export const graph = new StateGraph(State)
  .addNode("shorten", ({ topic }) => ({ length: topic.length }))
  .addEdge(START, "shorten")
  .addEdge("shorten", END)
  .compile();
