import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

/** One node that answers each human message: each run adds two messages. */
export const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", (state) => ({ messages: [new AIMessage(`That was message ${state.messages.length}.`)] }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
