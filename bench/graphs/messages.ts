import { AIMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

/** One node that answers each human message: two message objects more on each run. */
export const graph = new StateGraph(MessagesAnnotation)
  .addNode("answer", (state) => ({ messages: [new AIMessage(`That was message ${state.messages.length}.`)] }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
