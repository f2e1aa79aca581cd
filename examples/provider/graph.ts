import { AIMessage, SystemMessage } from "@langchain/core/messages";
import { loadModel } from "../shared/model.ts";
import { buildDesk } from "../support-desk/graph.ts";
import { tools } from "../support-desk/tools.ts";

const PROMPT = new SystemMessage(
  "You are a friendly support agent. Look up an order before you answer questions about it. Refund only the requested amount.",
);

// The same tools and approval step as ../support-desk; only the model differs.
export const graph = buildDesk(async (state, config) => {
  const loaded = await loadModel(config.configurable?.model);
  if ("missing" in loaded) return { messages: [new AIMessage(loaded.missing)] };

  const model = loaded.model.bindTools?.(tools);
  if (!model) throw new Error("This model cannot call tools.");
  return { messages: [await model.invoke([PROMPT, ...state.messages], config)] };
});
