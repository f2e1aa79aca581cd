import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Library } from "./loading/library.ts";

/** A serialized value: JSON text, or base64 for bytes. */
export interface Stored {
  type: string;
  value: string;
}

/**
 * Serializes channel values in the format of LangGraph's JSON serializer, as text. Plain data and messages of plain data take a fast path:
 * the original calls a function for every field when it writes, and awaits every field when it reads (5 ms for 100 messages).
 *
 * Instances of any class are serialized as LangChain does. Data becomes an instance only if it has the form of a message record. Other data
 * in the form of a record is escaped, because a client could name any class with it.
 */
export class StateSerializer {
  readonly #original: SerializerProtocol;
  readonly #classes: MessageClasses;

  /** @param original LangGraph's serializer, for all other values */
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
    if (type === "json" && bytes.length === 0)
      throw new TypeError(
        `A value of type ${typeof value} cannot be stored in the state: return a value that can be serialized to JSON.`,
      );
    return { type, value: Buffer.from(bytes).toString(type === "json" ? "utf8" : "base64") };
  }

  async load({ type, value: text }: Stored): Promise<unknown> {
    if (type !== "json") return this.#original.loadsTyped(type, new Uint8Array(Buffer.from(text, "base64")));
    const value = await this.#revived(text);
    return mayHoldEscapes(text) ? restoreRecords(value) : value;
  }

  async #revived(text: string): Promise<unknown> {
    const value: unknown = JSON.parse(text);
    // Only serialized instances contain this key.
    if (!text.includes('"lc":')) return value;
    const revived = revive(value, this.#classes);
    if (revived !== NEEDS_LOADER) return revived;
    // Data in the form of a record that cannot be deserialized is returned unchanged.
    return this.#original.loadsTyped("json", text).catch(() => JSON.parse(text));
  }
}

/** The original serializes deeper values and cycles. */
const MAX_LEVELS = 100;

/** Whether JSON.stringify serializes the value as the original does, and no part must be escaped. */
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

/** Messages serialize themselves and omit unset fields. */
function isPlainMessage(value: object, classes: MessageClasses, levels: number): boolean {
  const { lc_kwargs: fields } = value as { lc_kwargs?: Record<string, unknown> };
  if (typeof fields !== "object" || fields === null) return false;
  for (const key in fields) {
    const field = key in value ? (value as Record<string, unknown>)[key] : fields[key];
    if (field !== undefined && !isPlain(field, classes, levels)) return false;
  }
  return true;
}

/** Only LangChain's asynchronous loader can deserialize the value. */
const NEEDS_LOADER = Symbol();

type MessageClass = new (fields: Record<string, unknown>) => unknown;

type MessageClasses = ReadonlyMap<string, MessageClass>;

function revive(value: unknown, classes: MessageClasses): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return reviveAll(value, classes);
  const record = value as Record<string, unknown>;
  if (record.lc === 1 && record.type === "constructor" && Array.isArray(record.id))
    return reviveMessage(record, classes);
  // The original deserializes records of version 2 (Map, Set, undefined), which are rare.
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

/** Returns the class of the message in a record; undefined for all other records. */
function messageClassOf({ lc, type, id, kwargs }: Record<string, unknown>, classes: MessageClasses) {
  if (lc !== 1 || type !== "constructor" || !Array.isArray(id) || typeof kwargs !== "object" || kwargs === null) return;
  return id[0] === "langchain_core" && id[1] === "messages" ? classes.get(id.at(-1)) : undefined;
}

function reviveMessage(record: Record<string, unknown>, classes: MessageClasses): unknown {
  const Message = messageClassOf(record, classes);
  if (!Message) return NEEDS_LOADER;
  const fields = revive(record.kwargs, classes);
  if (fields === NEEDS_LOADER) return NEEDS_LOADER;
  // A message that was created with `contentBlocks` has no content in its record. LangChain's loader translates the name.
  const { content_blocks: contentBlocks, ...others } = fields as Record<string, unknown>;
  const isOfBlocks = contentBlocks !== undefined && others.content === undefined;
  try {
    return new Message(isOfBlocks ? { ...others, contentBlocks } : (fields as Record<string, unknown>));
  } catch {
    // A client sent a record of an invalid message.
    return record;
  }
}

/**
 * LangChain serializes an instance as a record, `{lc: 1, type: "constructor", id, kwargs}`, and deserializes every such record to an
 * instance. Plain data of this form is stored under this key as a list of its fields. A wrapper around the record does not suffice, because
 * LangGraph's loader works from the inside out, and neither does LangChain's own escape. The key begins with `~` because a text search for
 * a key that begins with `_` takes 40 times as long.
 */
const ESCAPED = "~lc_fields";
const ESCAPED_BY_LANGCHAIN = "__lc_escaped__";

const mayHoldEscapes = (text: string): boolean => text.includes(ESCAPED);

/** Whether LangChain or {@link restoreRecords} would deserialize an object to another value. */
const looksLikeRecord = (value: object): boolean => "lc" in value || ESCAPED in value || ESCAPED_BY_LANGCHAIN in value;

type Fields = Record<string, unknown>;

/** Whether a value serializes itself to a record. Data of the same form has no methods. */
const isSerializable = (value: object): value is Fields =>
  (value as Fields).lc_serializable === true && typeof (value as Fields).toJSON === "function";

/**
 * Escapes data that looks like a record. Returns the same value if nothing is escaped.
 *
 * @param isPermitted whether data may become an instance when it is deserialized
 */
function escapeRecords(value: unknown, isPermitted: (record: Fields) => boolean): unknown {
  const ancestors = new Set<object>();
  const escaped = (part: unknown): unknown => {
    // The original serializer handles cycles.
    if (typeof part !== "object" || part === null || ArrayBuffer.isView(part) || ancestors.has(part)) return part;
    ancestors.add(part);
    const written = escapedObject(part);
    ancestors.delete(part);
    return written;
  };
  const escapedObject = (object: object): unknown => {
    if (Array.isArray(object)) return escapedItems(object);
    if (object instanceof Map || object instanceof Set) {
      const items = [...object];
      const changed = escapedItems(items);
      if (changed === items) return object;
      return object instanceof Map ? new Map(changed as [unknown, unknown][]) : new Set(changed);
    }
    if (isSerializable(object)) return escapedInstance(object);
    const { toJSON } = object as Fields;
    if (typeof toJSON === "function") {
      const json: unknown = toJSON.call(object);
      const changed = escaped(json);
      return changed === json ? object : changed;
    }
    const changed = escapedFields(object as Fields);
    if (looksLikeRecord(object) && !isPermitted(object as Fields))
      return { [ESCAPED]: Object.entries(changed ?? object) };
    return changed ? copyWith(object, changed) : object;
  };
  const escapedItems = (items: unknown[]): unknown[] => {
    const changed = items.map(escaped);
    return changed.some((item, i) => item !== items[i]) ? changed : items;
  };
  /** Returns undefined if nothing is escaped. */
  const escapedFields = (fields: Fields): Fields | undefined => {
    const entries = Object.entries(fields);
    const changed = entries.map(([name, field]) => [name, escaped(field)] as const);
    return changed.some(([, field], i) => field !== entries[i]?.[1]) ? Object.fromEntries(changed) : undefined;
  };
  /** Escapes the constructor arguments, which the record of an instance contains. */
  const escapedInstance = (instance: Fields): unknown => {
    const given = (instance.lc_kwargs ?? {}) as Fields;
    const names = Object.keys(given);
    const fields = escapedFields(
      Object.fromEntries(names.map((name) => [name, name in instance ? instance[name] : given[name]])),
    );
    return fields ? copyWith(instance, { ...fields, lc_kwargs: fields }) : instance;
  };
  return escaped(value);
}

/** Returns a copy of the same class with different values for some fields. */
function copyWith(value: object, fields: Fields): object {
  const copy = Object.create(Object.getPrototypeOf(value), Object.getOwnPropertyDescriptors(value));
  for (const [name, field] of Object.entries(fields))
    Object.defineProperty(copy, name, { value: field, enumerable: true, writable: true, configurable: true });
  return copy;
}

/** Reverts {@link escapeRecords}. It modifies the deserialized value in place. */
function restoreRecords(value: unknown, seen = new Set<object>()): unknown {
  if (typeof value !== "object" || value === null || seen.has(value) || ArrayBuffer.isView(value)) return value;
  seen.add(value);
  const restore = (part: unknown) => restoreRecords(part, seen);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [restore(key), restore(item)]));
  if (value instanceof Set) return new Set([...value].map(restore));
  const entries = (value as Fields)[ESCAPED];
  if (Array.isArray(entries)) return Object.fromEntries(entries.map(([name, field]) => [name, restore(field)]));
  for (const name of Object.keys(value)) {
    const field = (value as Fields)[name];
    const restored = restore(field);
    if (restored !== field) (value as Fields)[name] = restored;
  }
  return value;
}
