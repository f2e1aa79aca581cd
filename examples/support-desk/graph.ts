import { END, type LangGraphRunnableConfig, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { delayFor } from "../shared/pause.ts";
import { approve, needsApproval, openCalls } from "./approve.ts";
import { ScriptedChatModel } from "./model.ts";
import { tools } from "./tools.ts";

type State = typeof MessagesAnnotation.State;
type Agent = (state: State, config: LangGraphRunnableConfig) => Promise<typeof MessagesAnnotation.Update>;

/**
 * Builds the support desk around an agent; ../provider uses a real model.
 * Compiled without a checkpointer, because the server has its own.
 */
export function buildDesk(agent: Agent) {
  return new StateGraph(MessagesAnnotation)
    .addNode("agent", agent)
    .addNode("approve", approve)
    .addNode("tools", new ToolNode(tools))
    .addEdge(START, "agent")
    .addConditionalEdges("agent", afterAgent, ["approve", "tools", END])
    .addConditionalEdges("approve", afterApprove, ["tools", "agent"])
    .addEdge("tools", "agent")
    .compile();
}

function afterAgent(state: State): "approve" | "tools" | typeof END {
  const calls = openCalls(state);
  if (calls.length === 0) return END;
  return calls.some(needsApproval) ? "approve" : "tools";
}

// A rejected call already has its result, so the tools skip it.
function afterApprove(state: State): "tools" | "agent" {
  return openCalls(state).length > 0 ? "tools" : "agent";
}

export const graph = buildDesk(async (state, config) => {
  const model = new ScriptedChatModel(delayFor(config, 15));
  return { messages: [await model.invoke(state.messages, config)] };
});
