type Node = Map<string, unknown>;

/** Longer names keep their end as one key: the values are built by recursion. */
const MAX_SEGMENTS = 12;

/** Levels that OpenInference puts around each item: `0.message.tool_calls.0.tool_call.function.name`. */
const WRAPPERS = new Set(["message", "message_content", "tool_call", "document"]);

/** Attributes like `0.role`, `0.tool_calls.1.name`: items of a list by their numbers. */
export class NumberedAttributes {
  readonly names: string[] = [];
  readonly #root: Node = new Map();

  /** Leaves an attribute out that has no number, or that is below another one with a value. */
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

/** Numbers may have gaps: a list of the highest number's length could fill the memory. */
function itemsOf(node: unknown): unknown {
  if (!(node instanceof Map)) return node;
  const entries = [...(node as Node)];
  if (!entries.every(([key]) => NUMBER.test(key)))
    return Object.fromEntries(entries.map(([key, value]) => [key, itemsOf(value)]));
  return entries.sort(([a], [b]) => Number(a) - Number(b)).map(([, value]) => itemsOf(value));
}
