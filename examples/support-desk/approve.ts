import { AIMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { interrupt, type MessagesAnnotation } from "@langchain/langgraph";
import { z } from "zod";
import { dollars, findOrder } from "./orders.ts";
import { refundOrder } from "./tools.ts";

type State = typeof MessagesAnnotation.State;

/** The decision of the reviewer, sent as `command.resume`. */
const Decision = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("approve") }),
  z.object({ decision: z.literal("edit"), amount: z.number().positive() }),
  z.object({ decision: z.literal("reject"), reason: z.string().optional() }),
]);

/** The tool calls of the last model answer that have no result. */
export function openCalls({ messages }: State): ToolCall[] {
  const answered = new Set(messages.filter(ToolMessage.isInstance).map((m) => m.tool_call_id));
  const calls = messages.findLast(AIMessage.isInstance)?.tool_calls ?? [];
  return calls.filter((call) => !answered.has(call.id ?? ""));
}

export function needsApproval(call: ToolCall): boolean {
  return call.name === refundOrder.name;
}

/** A graph node that interrupts the run at each refund until a reviewer decides. */
export function approve(state: State): typeof MessagesAnnotation.Update {
  const asked = state.messages.findLast(AIMessage.isInstance);
  if (!asked) return {};
  const edited = new Map<string | undefined, ToolCall>();
  const rejections: ToolMessage[] = [];

  for (const call of openCalls(state).filter(needsApproval)) {
    const answer = askReviewer(call);
    if (answer.decision === "edit") {
      edited.set(call.id, { ...call, args: { ...call.args, amount: answer.amount } });
    }
    if (answer.decision === "reject") {
      rejections.push(
        new ToolMessage({
          tool_call_id: call.id ?? "",
          name: call.name,
          status: "error",
          content: JSON.stringify({ status: "rejected", ...call.args, reason: answer.reason }),
        }),
      );
    }
  }
  if (edited.size === 0) return { messages: rejections };

  // A message with an existing ID replaces the old message, so the conversation
  // shows the calls that are executed.
  const corrected = new AIMessage({
    id: asked.id,
    content: asked.content,
    tool_calls: asked.tool_calls?.map((call) => edited.get(call.id) ?? call),
    usage_metadata: asked.usage_metadata,
    response_metadata: asked.response_metadata,
  });
  return { messages: [corrected, ...rejections] };
}

function askReviewer(call: ToolCall): z.infer<typeof Decision> {
  const { order_id, amount } = call.args as { order_id: string; amount: number };
  const item = findOrder(order_id)?.item ?? "not in the order table";
  const request = {
    action: call.name,
    order: order_id,
    amount,
    question: `Refund ${dollars(amount)} for order ${order_id} (${item})?`,
    allowed_decisions: ["approve", "edit", "reject"],
  };

  // On resume the node runs again from its start, and interrupt() returns the answer
  // instead of stopping. An invalid answer must not cause a refund: ask again.
  let answer = Decision.safeParse(interrupt(request));
  while (!answer.success) {
    const problem =
      'Answer with {"decision": "approve"}, {"decision": "edit", "amount": 10} or {"decision": "reject"}.';
    answer = Decision.safeParse(interrupt({ ...request, problem }));
  }
  return answer.data;
}
