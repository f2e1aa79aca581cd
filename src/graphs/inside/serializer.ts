import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Library } from "./library.ts";

/** A value as it is stored: JSON text, or base64 for bytes. */
export interface Stored {
  type: string;
  value: string;
}

/**
 * Writes and reads channel values in the format of LangGraph's own JSON serializer, as text. What is plain data,
 * or messages of plain data, goes the fast way: the original calls a function for every field when it writes, and
 * awaits every field when it reads (5 ms for a conversation of 100 messages).
 */
export class StateSerializer {
  readonly #original: SerializerProtocol;
  /** The message classes: what nearly every graph state is made of. */
  readonly #classes: MessageClasses;

  /** @param original LangGraph's serializer, for the values that are neither */
  constructor(original: SerializerProtocol, { messages }: Library) {
    this.#original = original;
    this.#classes = new Map(
      Object.entries(messages).filter(([name]) => /^[A-Z]\w*Message(Chunk)?$/.test(name)) as [string, MessageClass][],
    );
  }

  async dump(value: unknown): Promise<Stored> {
    if (isPlain(value)) return { type: "json", value: JSON.stringify(value) };
    const [type, bytes] = await this.#original.dumpsTyped(value);
    if (type === "json" && bytes.length === 0) throw new TypeError(`A ${typeof value} cannot be stored in the state.`);
    return { type, value: Buffer.from(bytes).toString(type === "json" ? "utf8" : "base64") };
  }

  async load({ type, value: text }: Stored): Promise<unknown> {
    if (type !== "json") return this.#original.loadsTyped(type, new Uint8Array(Buffer.from(text, "base64")));
    const value: unknown = JSON.parse(text);
    // Only records made by a serializer carry this key; plain data is done.
    if (!text.includes('"lc":')) return value;
    const revived = revive(value, this.#classes);
    if (revived !== NEEDS_LOADER) return revived;
    // Data that only looks like a record of something cannot be made into it: then it is what it is.
    return this.#original.loadsTyped(type, text).catch(() => JSON.parse(text));
  }
}

/** Deeper values, and those that contain themselves, are left to the original. */
const MOST_LEVELS = 100;

/** Whether JSON.stringify alone writes the value as the original would. */
function isPlain(value: unknown, levels = MOST_LEVELS): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean" || typeof value === "number")
    return true;
  return typeof value === "object" && levels > 0 && isPlainObject(value, levels - 1);
}

function isPlainObject(value: object, levels: number): boolean {
  if (Array.isArray(value)) return value.every((item) => isPlain(item, levels));
  if ((value as { lc_serializable?: unknown }).lc_serializable === true) return isPlainMessage(value, levels);
  const prototype = Object.getPrototypeOf(value);
  if ((prototype !== Object.prototype && prototype !== null) || "toJSON" in value || "lg_name" in value) return false;
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], levels)) return false;
  return true;
}

/** Messages write themselves; a field that is unset is left out. */
function isPlainMessage(value: object, levels: number): boolean {
  const { lc_kwargs: fields } = value as { lc_kwargs?: Record<string, unknown> };
  if (typeof fields !== "object" || fields === null) return false;
  for (const key in fields) if (fields[key] !== undefined && !isPlain(fields[key], levels)) return false;
  return true;
}

/** The value holds something that only LangChain's own, asynchronous loader can make. */
const NEEDS_LOADER = Symbol();

type MessageClass = new (fields: Record<string, unknown>) => unknown;

type MessageClasses = ReadonlyMap<string, MessageClass>;

function revive(value: unknown, classes: MessageClasses): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return reviveAll(value, classes);
  const record = value as Record<string, unknown>;
  if (record.lc === 1 && record.type === "constructor" && Array.isArray(record.id))
    return reviveMessage(record, classes);
  // Records of version 2 (Map, Set, undefined ...) are rare; the original knows them all.
  if (record.lc === 2) return NEEDS_LOADER;
  for (const key of Object.keys(record)) {
    const revived = revive(record[key], classes);
    if (revived === NEEDS_LOADER) return NEEDS_LOADER;
    record[key] = revived;
  }
  return record;
}

function reviveAll(items: unknown[], classes: MessageClasses): unknown {
  for (let i = 0; i < items.length; i++) {
    const revived = revive(items[i], classes);
    if (revived === NEEDS_LOADER) return NEEDS_LOADER;
    items[i] = revived;
  }
  return items;
}

function reviveMessage(record: Record<string, unknown>, classes: MessageClasses): unknown {
  const id = record.id as string[];
  const Message = id[0] === "langchain_core" && id[1] === "messages" ? classes.get(id.at(-1) ?? "") : undefined;
  if (!Message) return NEEDS_LOADER;
  const fields = revive(record.kwargs, classes);
  return fields === NEEDS_LOADER ? NEEDS_LOADER : new Message(fields as Record<string, unknown>);
}
