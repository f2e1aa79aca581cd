import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { dollars, findOrder } from "./orders.ts";

export const lookUpOrder = tool(
  ({ order_id }) => {
    const order = findOrder(order_id);
    return JSON.stringify(order ? { found: true, order } : { found: false, order_id });
  },
  {
    name: "look_up_order",
    description: "Look up one order by its four-digit number.",
    schema: z.object({ order_id: z.string() }),
  },
);

/** The graph executes this tool only after the approval of a reviewer; see approve.ts. */
export const refundOrder = tool(
  ({ order_id, amount }) => {
    const reason = refusalReason(order_id, amount);
    if (reason) return JSON.stringify({ status: "failed", order_id, reason });
    return JSON.stringify({ status: "refunded", order_id, amount, receipt: `R-${order_id}` });
  },
  {
    name: "refund_order",
    description: "Refund an order in full or in part. Requires the approval of a person.",
    schema: z.object({ order_id: z.string(), amount: z.number().positive() }),
  },
);

function refusalReason(orderId: string, amount: number): string | undefined {
  const order = findOrder(orderId);
  if (!order) return "The order does not exist.";
  if (order.status === "refunded") return "The order is already refunded.";
  if (amount > order.total) return `The amount exceeds the total of the order, ${dollars(order.total)}.`;
  return undefined;
}

export const tools = [lookUpOrder, refundOrder];
