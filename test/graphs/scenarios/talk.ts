import { FakeListChatModel } from "@langchain/core/utils/testing";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

/** Answers each message with the same three letters, one token a letter. */
export const talk = new StateGraph(MessagesAnnotation)
  .addNode("answer", async ({ messages }) => ({
    messages: [await new FakeListChatModel({ responses: ["yes"] }).invoke(messages)],
  }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();
