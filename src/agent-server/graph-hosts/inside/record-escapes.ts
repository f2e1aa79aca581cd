/**
 * LangChain writes an instance as a record, `{lc: 1, type: "constructor", id, kwargs}`, and makes any record that it reads into an
 * instance. Data that only looks like one, which a client may have sent, is stored under this key as a list of its fields, so that
 * it is read as the data it was. The loader of LangGraph goes from the inside to the outside, so a wrapper around the record would
 * not do, and that of LangChain (`__lc_escaped__`) does not. A text is searched for `~` in a fortieth of the time that `_` takes.
 */
const ESCAPED = "~lc_fields";
const ESCAPED_BY_LANGCHAIN = "__lc_escaped__";

/** Whether a text may have an escape in it. */
export const mayHoldEscapes = (text: string): boolean => text.includes(ESCAPED);

/** Whether an object would be taken for something else than data when it is read. */
export const looksLikeRecord = (value: object): boolean =>
  "lc" in value || ESCAPED in value || ESCAPED_BY_LANGCHAIN in value;

type Fields = Record<string, unknown>;

/** Whether a value writes its record itself. Data of the same look has no methods. */
export const isSerializable = (value: object): value is Fields =>
  (value as Fields).lc_serializable === true && typeof (value as Fields).toJSON === "function";

/**
 * The value with escapes in the place of data that looks like a record; the same value where there is none.
 *
 * @param isPermitted whether data may become an instance when it is read
 */
export function escapeRecords(value: unknown, isPermitted: (record: Fields) => boolean): unknown {
  const ancestors = new Set<object>();
  const escaped = (part: unknown): unknown => {
    // Of a cycle the serializer makes what it makes of cycles.
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
  /** Undefined where nothing is escaped. */
  const escapedFields = (fields: Fields): Fields | undefined => {
    const entries = Object.entries(fields);
    const changed = entries.map(([name, field]) => [name, escaped(field)] as const);
    return changed.some(([, field], i) => field !== entries[i]?.[1]) ? Object.fromEntries(changed) : undefined;
  };
  /** Its record has the fields that its constructor was given. */
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

/** A copy of the same class, so that serializers know it, with other values of some fields. */
function copyWith(value: object, fields: Fields): object {
  const copy = Object.create(Object.getPrototypeOf(value), Object.getOwnPropertyDescriptors(value));
  for (const [name, field] of Object.entries(fields))
    Object.defineProperty(copy, name, { value: field, enumerable: true, writable: true, configurable: true });
  return copy;
}

/** What {@link escapeRecords} was given, from what was read; in place, as nobody else has that yet. */
export function restoreRecords(value: unknown, seen = new Set<object>()): unknown {
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
