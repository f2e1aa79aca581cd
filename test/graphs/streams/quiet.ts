import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ReciteModel } from "./model.ts";

// Two models speak, and nobody is to hear the second one's pieces: its tag says so.

const model = new ReciteModel();

export const builder = new StateGraph(MessagesAnnotation)
  .addNode("speak", async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] }))
  .addNode("mutter", async ({ messages }, config) => ({
    messages: [await model.withConfig({ tags: ["nostream"] }).invoke(messages, config)],
  }))
  .addEdge(START, "speak")
  .addEdge("speak", "mutter")
  .addEdge("mutter", END);

export const graph = builder.compile();
