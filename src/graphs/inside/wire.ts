import { isBaseMessage } from "@langchain/core/messages";

/**
 * Values of a graph as JSON text for the wire. Messages become flat objects that carry all their fields, null
 * or empty where unset.
 *
 * @throws TypeError when the value holds what JSON cannot: a cycle or a BigInt
 */
export function toWire(value: unknown): string {
  return JSON.stringify(value, flattenMessages) ?? "null";
}

function flattenMessages(this: unknown, key: string, value: unknown): unknown {
  // `value` has been through toJSON; the holder still has the original.
  const original = (this as Record<string, unknown>)[key];
  if (typeof original !== "object" || original === null) return value;
  if (isBaseMessage(original)) return flatMessage(original as unknown as MessageFields);
  if (original instanceof Error) return { error: original.name, message: original.message };
  if (original instanceof Map || original instanceof Set) return [...original];
  return value;
}

interface MessageFields {
  getType(): string;
  [field: string]: unknown;
}

/** Fields that only some kinds of message have. */
const OPTIONAL = ["tool_call_id", "artifact", "status", "role", "tool_call_chunks"] as const;

function flatMessage(message: MessageFields): Record<string, unknown> {
  const type = message.getType();
  const flat: Record<string, unknown> = {
    content: message.content,
    additional_kwargs: message.additional_kwargs ?? {},
    response_metadata: message.response_metadata ?? {},
    type,
    name: message.name ?? null,
    id: message.id ?? null,
    example: message.example ?? false,
    tool_calls: message.tool_calls ?? [],
    invalid_tool_calls: message.invalid_tool_calls ?? [],
    usage_metadata: message.usage_metadata ?? null,
  };
  for (const field of OPTIONAL) if (message[field] !== undefined) flat[field] = message[field];
  return flat;
}
