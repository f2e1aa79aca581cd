import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { type Reader, ROWS } from "./attribute-table.ts";
import type { Attributes } from "./wire-fields.ts";

/** The fields of a run that are read from its span's attributes. `metadata` also contains attributes that no table row reads. */
export interface RunAttributes {
  name?: string;
  run_type?: string;
  inputs?: JsonObject;
  outputs?: JsonObject;
  tags?: string[];
  metadata: JsonObject;
  invocation_params: JsonObject;
  reference_example_id?: string;
  session_name?: string;
  session_id?: string;
  run_id?: string;
  trace_id?: string;
  parent_run_id?: string;
  dotted_order?: string;
  attachments?: { name: string; mime_type: string; data: Uint8Array }[];
  /** In seconds after the start. */
  first_token?: number;
}

/** Parameters that LangSmith also stores in the metadata. They are copied after all rows are read. */
const LS_PARAMS = { temperature: "ls_temperature", max_tokens: "ls_max_tokens", stop: "ls_stop" };

interface Source {
  /**
   * 0 for langsmith.*, 1 for gen_ai.*, 2 for others. A field is taken from the source with the lowest rank, then from the first one in the
   * table.
   */
  rank: number;
  order: number;
  read: Reader;
  targets: string[][];
}

interface Found {
  source: Source;
  value: unknown;
  /** The text that replaces `*` in the targets. */
  rest?: string;
  names: string[];
}

const rankOf = (name: string): number => (name.startsWith("langsmith.") ? 0 : name.startsWith("gen_ai.") ? 1 : 2);

const by_name = new Map<string, Source[]>();
const by_prefix: { prefix: string; isNumbered: boolean; source: Source }[] = [];

const sources = ROWS.flatMap(([names, read, ...targets]) =>
  names.map((name) => ({ name, rank: rankOf(name), read, targets: targets.map((target) => target.split("/")) })),
).sort((a, b) => a.rank - b.rank);

for (const [order, { name, ...rest }] of sources.entries()) {
  const source = { ...rest, order };
  if (/\.[*#]$/.test(name)) by_prefix.push({ prefix: name.slice(0, -1), isNumbered: name.endsWith("#"), source });
  else by_name.set(name, [...(by_name.get(name) ?? []), source]);
}

/** Reads the attributes of a span according to {@link ROWS}. */
export function readAttributes(attributes: Attributes): RunAttributes {
  const run: RunAttributes = { metadata: {}, invocation_params: {} };
  const unread = new Map(attributes);
  const payload_ranks = new Map<string, number>();
  for (const { source, value, rest, names } of find(attributes)) {
    const read = source.read(value, attributes);
    if (read === undefined) continue;
    for (const name of names) unread.delete(name);
    for (const path of source.targets) {
      const top = path[0] as string;
      // Inputs are read from sources of one rank, and so are outputs. Otherwise they could contain the same messages twice.
      if (top === "inputs" || top === "outputs") {
        if ((payload_ranks.get(top) ?? source.rank) !== source.rank) continue;
        payload_ranks.set(top, source.rank);
      }
      if (path.at(-1) !== "*") write(run, path, read);
      else if (rest !== undefined) write(run, [...path.slice(0, -1), rest], read);
      else for (const [key, item] of Object.entries(read as JsonObject)) write(run, [...path.slice(0, -1), key], item);
    }
  }
  for (const [param, name] of Object.entries(LS_PARAMS)) {
    if (Object.hasOwn(run.invocation_params, param)) write(run, ["metadata", name], run.invocation_params[param]);
  }
  for (const [name, value] of unread) if (value !== null) write(run, ["metadata", name], value);
  return run;
}

function find(attributes: Attributes): Found[] {
  const found: Found[] = [];
  const numbered = new Map<Source, NumberedAttributes>();
  for (const [name, value] of attributes) {
    for (const source of by_name.get(name) ?? []) found.push({ source, value, names: [name] });
    for (const { prefix, isNumbered, source } of by_prefix) {
      if (!name.startsWith(prefix) || name.length === prefix.length) continue;
      const rest = name.slice(prefix.length);
      if (!isNumbered) found.push({ source, value, rest, names: [name] });
      else {
        const group = numbered.get(source) ?? new NumberedAttributes();
        numbered.set(source, group);
        group.add(name, rest, value);
      }
    }
  }
  for (const [source, group] of numbered) {
    if (group.names.length > 0) found.push({ source, value: group.list(), names: group.names });
  }
  return found.sort((a, b) => a.source.order - b.source.order);
}

/** Writes a value, unless the path already has a value. */
function write(run: RunAttributes, path: readonly string[], value: unknown): void {
  if (path.includes("__proto__")) return;
  let at = run as unknown as JsonObject;
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(at, key)) at[key] = {};
    const next = at[key];
    if (!isObject(next)) return;
    at = next;
  }
  const last = path.at(-1) as string;
  if (!Object.hasOwn(at, last)) at[last] = value;
}

type NumberedNode = Map<string, unknown>;

/** The remaining segments of a longer name become one key, because the values are built recursively. */
const MAX_SEGMENTS = 12;

/** Levels in which OpenInference wraps each item, as in `0.message.tool_calls.0.tool_call.function.name`. */
const WRAPPERS = new Set(["message", "message_content", "tool_call", "document"]);

/** Builds a list from attributes such as `0.role` and `0.tool_calls.1.name`, whose names contain the numbers of items. */
class NumberedAttributes {
  readonly names: string[] = [];
  readonly #root: NumberedNode = new Map();

  /** Ignores an attribute without a number, and an attribute below another attribute that has a value. */
  add(name: string, rest: string, value: unknown): void {
    const [first = "", ...others] = rest.split(".");
    if (!NUMBER.test(first)) return;
    const path = others.filter((segment) => !WRAPPERS.has(segment) && segment !== "__proto__");
    const keys = [first, ...path.slice(0, MAX_SEGMENTS), path.slice(MAX_SEGMENTS).join(".")].filter(
      (key) => key !== "",
    );
    let node = this.#root;
    for (const key of keys.slice(0, -1)) {
      const next = node.get(key) ?? new Map();
      if (!(next instanceof Map)) return;
      node.set(key, next);
      node = next;
    }
    const last = keys.at(-1) as string;
    if (node.has(last)) return;
    node.set(last, value);
    this.names.push(name);
  }

  list(): unknown[] {
    return itemsOf(this.#root) as unknown[];
  }
}

const NUMBER = /^\d{1,9}$/;

/** Skips gaps between numbers: a list as long as the highest number could exhaust the memory. */
function itemsOf(node: unknown): unknown {
  if (!(node instanceof Map)) return node;
  const entries = [...(node as NumberedNode)];
  if (!entries.every(([key]) => NUMBER.test(key)))
    return Object.fromEntries(entries.map(([key, value]) => [key, itemsOf(value)]));
  return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, value]) => itemsOf(value));
}
