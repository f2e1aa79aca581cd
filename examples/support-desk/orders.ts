export interface Order {
  id: string;
  item: string;
  total: number;
  status: "being packed" | "shipped" | "delivered" | "refunded";
  /** Details of the status. */
  note: string;
}

// Refunds do not change this table, so the same question always has the same answer.
const orders: Order[] = [
  { id: "1042", item: "walking boots", total: 129, status: "shipped", note: "It should arrive on Thursday." },
  { id: "1043", item: "rain jacket", total: 89.5, status: "delivered", note: "It was left at the front desk." },
  {
    id: "1044",
    item: "camping stove",
    total: 54.25,
    status: "being packed",
    note: "It leaves the warehouse tomorrow.",
  },
  { id: "1045", item: "head torch", total: 32, status: "refunded", note: "The money was sent back on Monday." },
];

export function findOrder(id: string): Order | undefined {
  return orders.find((order) => order.id === id);
}

export function dollars(amount: number): string {
  return `$${amount.toFixed(2)}`;
}
