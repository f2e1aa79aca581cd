import { type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { dollars, type Order } from "./orders.ts";
import { lookUpOrder, refundOrder } from "./tools.ts";

/** The next reply of the scripted model: text and optionally a tool call. */
export interface Reply {
  text: string;
  toolCall?: { name: string; args: Record<string, unknown> };
}

const HELP = 'Hello! Ask me "where is my order 1042?" or say "refund order 1042".';

/** The rules of the support desk: returns the next reply in a conversation. */
export function nextReply(messages: BaseMessage[]): Reply {
  const last = messages.at(-1);
  const questions = messages.filter(HumanMessage.isInstance).map((message) => message.text);
  if (last && ToolMessage.isInstance(last)) return afterTool(last, wantsRefund(questions.at(-1) ?? ""));
  return afterHuman(questions);
}

function wantsRefund(text: string): boolean {
  return /refund|money back/i.test(text);
}

function afterHuman(questions: string[]): Reply {
  const text = questions.at(-1) ?? "";
  if (!wantsRefund(text) && !/order|where|parcel|\b\d{4}\b/i.test(text)) return { text: HELP };

  // "Refund it" refers to the last order in the conversation.
  const orderId = questions.map((line) => line.match(/\b\d{4}\b/)?.[0]).findLast(Boolean);
  if (!orderId) return { text: "Which order do you mean? Please give me its four-digit number." };
  return {
    text: `Let me look up order ${orderId}.`,
    toolCall: { name: lookUpOrder.name, args: { order_id: orderId } },
  };
}

function afterTool(result: ToolMessage, refundWanted: boolean): Reply {
  const data = JSON.parse(result.text);
  if (result.name === refundOrder.name) return { text: afterRefund(data) };
  if (!data.found) return { text: `I cannot find order ${data.order_id}. Please check the number.` };

  const { id, item, total, status, note } = data.order as Order;
  if (!refundWanted) return { text: `Order ${id} (${item}) is ${status}. ${note}` };
  if (status === "refunded") return { text: `Order ${id} (${item}) is already refunded. ${note}` };
  return {
    text: `Order ${id} (${item}) cost ${dollars(total)}. I am asking a colleague to approve the refund.`,
    toolCall: { name: refundOrder.name, args: { order_id: id, amount: total } },
  };
}

interface RefundResult {
  status: "refunded" | "failed" | "rejected";
  order_id: string;
  amount: number;
  receipt: string;
  reason?: string;
}

function afterRefund({ status, order_id, amount, receipt, reason }: RefundResult): string {
  switch (status) {
    case "refunded":
      return `Done: ${dollars(amount)} for order ${order_id} is on its way back to you. Your receipt is ${receipt}.`;
    case "failed":
      return `The refund for order ${order_id} did not work. ${reason}`;
    case "rejected":
      return `I am sorry, the refund for order ${order_id} was not approved.${reason ? ` The reason: ${reason}` : ""}`;
  }
}
