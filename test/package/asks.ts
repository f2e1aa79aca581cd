import { Annotation, StateGraph } from "@langchain/langgraph";
import { getToken } from "threadmill/graph";

/** Asks for a token of a provider that nobody has registered: the refusal shows that the package's own module was found. */
export const graph = new StateGraph(Annotation.Root({ token: Annotation<string>() }))
  .addNode("ask", async (_, config) => ({ token: await getToken(config, { provider: "nobody", scopes: [] }) }))
  .addEdge("__start__", "ask")
  .addEdge("ask", "__end__")
  .compile();
