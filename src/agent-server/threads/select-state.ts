import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";

export const pick = (record: object, fields: readonly string[]): JsonObject =>
  Object.fromEntries(
    fields.filter((field) => Object.hasOwn(record, field)).map((field) => [field, (record as JsonObject)[field]]),
  );

/** Returns the selected fields of a state. `values.<key>` selects a single value; undefined selects the whole state. */
export function selectState(state: JsonObject, select: readonly string[] | undefined): JsonObject {
  if (!select) return state;
  const keys = select.filter((name) => name.startsWith("values.")).map((name) => name.slice("values.".length));
  const selected = pick(state, select);
  if (keys.length > 0 && !("values" in selected) && isObject(state.values)) selected.values = pick(state.values, keys);
  return selected;
}
