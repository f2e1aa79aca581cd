import * as messages from "@langchain/core/messages";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

/**
 * Reads what LangGraph's own JSON serializer wrote, in the same format, but without a promise per value: that
 * one awaits every nested field, 5 ms for a conversation of 100 messages.
 */
export class StateSerializer implements SerializerProtocol {
  readonly #original: SerializerProtocol;

  /** @param original LangGraph's serializer: it writes, and reads what is rare */
  constructor(original: SerializerProtocol) {
    this.#original = original;
  }

  dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
    return this.#original.dumpsTyped(value);
  }

  async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
    if (type !== "json") return this.#original.loadsTyped(type, data);
    const json = typeof data === "string" ? data : decoder.decode(data);
    const value: unknown = JSON.parse(json);
    // Only records made by a serializer carry this key; plain data is done.
    if (!json.includes('"lc":')) return value;
    const revived = revive(value);
    return revived === NEEDS_LOADER ? this.#original.loadsTyped(type, json) : revived;
  }
}

const decoder = new TextDecoder();

/** The value holds something that only LangChain's own, asynchronous loader can make. */
const NEEDS_LOADER = Symbol();

type MessageClass = new (fields: Record<string, unknown>) => unknown;

/** The message classes: what nearly every graph state is made of. */
const MESSAGE_CLASSES: ReadonlyMap<string, MessageClass> = new Map(
  Object.entries(messages).filter(([name]) => /^[A-Z]\w*Message(Chunk)?$/.test(name)) as [string, MessageClass][],
);

function revive(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return reviveAll(value);
  const record = value as Record<string, unknown>;
  if (record.lc === 1 && record.type === "constructor" && Array.isArray(record.id)) return reviveMessage(record);
  // Records of version 2 (Map, Set, undefined ...) are rare; the original knows them all.
  if (record.lc === 2) return NEEDS_LOADER;
  for (const key of Object.keys(record)) {
    const revived = revive(record[key]);
    if (revived === NEEDS_LOADER) return NEEDS_LOADER;
    record[key] = revived;
  }
  return record;
}

function reviveAll(items: unknown[]): unknown {
  for (let i = 0; i < items.length; i++) {
    const revived = revive(items[i]);
    if (revived === NEEDS_LOADER) return NEEDS_LOADER;
    items[i] = revived;
  }
  return items;
}

function reviveMessage(record: Record<string, unknown>): unknown {
  const id = record.id as string[];
  const Message = id[0] === "langchain_core" && id[1] === "messages" ? MESSAGE_CLASSES.get(id.at(-1) ?? "") : undefined;
  if (!Message) return NEEDS_LOADER;
  const fields = revive(record.kwargs);
  return fields === NEEDS_LOADER ? NEEDS_LOADER : new Message(fields as Record<string, unknown>);
}
