import { types } from "node:util";

/**
 * Converts a value to JSON text for the API. Messages become flat objects with all their fields, null or empty where unset.
 *
 * @throws TypeError when the value contains a cycle or a BigInt
 */
export function toWire(value: unknown): string {
  return JSON.stringify(flatten(value, [])) ?? "null";
}

/** Copies only changed parts. With one native stringify, this takes a fifth of the time of a stringify with a replacer function. */
function flatten(value: unknown, ancestors: object[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (ancestors.includes(value))
    throw new TypeError("The value contains a circular reference and cannot be converted to JSON.");
  ancestors.push(value);
  const flat = flattenObject(value, ancestors);
  ancestors.pop();
  return flat;
}

function flattenObject(value: object, ancestors: object[]): unknown {
  if (Array.isArray(value)) return flattenItems(value, ancestors);
  if (isMessage(value)) return flattenFields(flatMessage(value), ancestors);
  if (isError(value)) return { error: value.name, message: value.message };
  if (value instanceof Map || value instanceof Set) return flattenItems([...value], ancestors);
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return flatten((value as { toJSON(): unknown }).toJSON(), ancestors);
  return flattenFields(value as Record<string, unknown>, ancestors);
}

function flattenItems(items: unknown[], ancestors: object[]): unknown[] {
  let copy: unknown[] | undefined;
  for (let i = 0; i < items.length; i++) {
    const flat = flatten(items[i], ancestors);
    if (flat !== items[i]) {
      copy ??= [...items];
      copy[i] = flat;
    }
  }
  return copy ?? items;
}

function flattenFields(fields: Record<string, unknown>, ancestors: object[]): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  for (const key in fields) {
    const flat = flatten(fields[key], ancestors);
    if (flat !== fields[key]) {
      copy ??= { ...fields };
      copy[key] = flat;
    }
  }
  return copy ?? fields;
}

export interface Message {
  id?: string;
  _getType(): string;
  [field: string]: unknown;
}

/** LangChain's own check, which also recognizes messages of other copies of LangChain. */
export const isMessage = (value: unknown): value is Message =>
  typeof (value as Partial<Message> | null | undefined)?._getType === "function";

/** Fields of some message types. */
const OPTIONAL = ["tool_call_id", "artifact", "status", "role", "tool_call_chunks"] as const;

function flatMessage(message: Message): Record<string, unknown> {
  const type = message._getType();
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

/** Also for errors of a `vm` context, which have a class of their own. */
export const isError = (value: unknown): value is Error => value instanceof Error || types.isNativeError(value);
