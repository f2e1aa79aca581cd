import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Library } from "./loading/library.ts";
import { escapeRecords, isSerializable, looksLikeRecord, mayHoldEscapes, restoreRecords } from "./record-escapes.ts";

/** A value as it is stored: JSON text, or base64 for bytes. */
export interface Stored {
  type: string;
  value: string;
}

/**
 * Writes and reads channel values in the format of LangGraph's own JSON serializer, as text. What is plain data,
 * or messages of plain data, goes the fast way: the original calls a function for every field when it writes, and
 * awaits every field when it reads (5 ms for a conversation of 100 messages).
 *
 * Instances of any class are written and read as LangChain has it. Data becomes one only where it reads like the record of a message,
 * which clients may send; other data that reads like a record is escaped, as a client could name any class with it.
 */
export class StateSerializer {
  readonly #original: SerializerProtocol;
  /** The message classes: what nearly every graph state is made of. */
  readonly #classes: MessageClasses;

  /** @param original LangGraph's serializer, for the values that are neither */
  constructor(original: SerializerProtocol, { messages }: Library) {
    this.#original = original;
    this.#classes = new Map(
      Object.entries(messages).filter(([name]) => /^(?!Base)[A-Z]\w*Message(Chunk)?$/.test(name)) as [
        string,
        MessageClass,
      ][],
    );
  }

  async dump(value: unknown): Promise<Stored> {
    if (isPlain(value, this.#classes)) return { type: "json", value: JSON.stringify(value) };
    const escaped = escapeRecords(value, (record) => messageClassOf(record, this.#classes) !== undefined);
    const [type, bytes] = await this.#original.dumpsTyped(escaped);
    if (type === "json" && bytes.length === 0) throw new TypeError(`A ${typeof value} cannot be stored in the state.`);
    return { type, value: Buffer.from(bytes).toString(type === "json" ? "utf8" : "base64") };
  }

  async load({ type, value: text }: Stored): Promise<unknown> {
    if (type !== "json") return this.#original.loadsTyped(type, new Uint8Array(Buffer.from(text, "base64")));
    const value = await this.#revived(text);
    return mayHoldEscapes(text) ? restoreRecords(value) : value;
  }

  async #revived(text: string): Promise<unknown> {
    const value: unknown = JSON.parse(text);
    // Only records made by a serializer carry this key; plain data is done.
    if (!text.includes('"lc":')) return value;
    const revived = revive(value, this.#classes);
    if (revived !== NEEDS_LOADER) return revived;
    // Data that only looks like a record of something cannot be made into it: then it is what it is.
    return this.#original.loadsTyped("json", text).catch(() => JSON.parse(text));
  }
}

/** Deeper values, and those that contain themselves, are left to the original. */
const MAX_LEVELS = 100;

/** Whether JSON.stringify alone writes the value as the original would, and nothing in it has to be escaped. */
function isPlain(value: unknown, classes: MessageClasses, levels = MAX_LEVELS): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean" || typeof value === "number")
    return true;
  return typeof value === "object" && levels > 0 && isPlainObject(value, classes, levels - 1);
}

function isPlainObject(value: object, classes: MessageClasses, levels: number): boolean {
  if (Array.isArray(value)) return value.every((item) => isPlain(item, classes, levels));
  if (isSerializable(value)) return isPlainMessage(value, classes, levels);
  const prototype = Object.getPrototypeOf(value);
  if ((prototype !== Object.prototype && prototype !== null) || "toJSON" in value || "lg_name" in value) return false;
  if (looksLikeRecord(value) && !messageClassOf(value as Record<string, unknown>, classes)) return false;
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], classes, levels)) return false;
  return true;
}

/** Messages write themselves; a field that is unset is left out. */
function isPlainMessage(value: object, classes: MessageClasses, levels: number): boolean {
  const { lc_kwargs: fields } = value as { lc_kwargs?: Record<string, unknown> };
  if (typeof fields !== "object" || fields === null) return false;
  for (const key in fields) {
    const field = key in value ? (value as Record<string, unknown>)[key] : fields[key];
    if (field !== undefined && !isPlain(field, classes, levels)) return false;
  }
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

/** The class of the message that a record stands for; undefined for all other records. */
function messageClassOf({ lc, type, id, kwargs }: Record<string, unknown>, classes: MessageClasses) {
  if (lc !== 1 || type !== "constructor" || !Array.isArray(id) || typeof kwargs !== "object" || kwargs === null) return;
  return id[0] === "langchain_core" && id[1] === "messages" ? classes.get(id.at(-1)) : undefined;
}

function reviveMessage(record: Record<string, unknown>, classes: MessageClasses): unknown {
  const Message = messageClassOf(record, classes);
  if (!Message) return NEEDS_LOADER;
  const fields = revive(record.kwargs, classes);
  if (fields === NEEDS_LOADER) return NEEDS_LOADER;
  try {
    return new Message(fields as Record<string, unknown>);
  } catch {
    // A client's record of a message that cannot be made.
    return record;
  }
}
