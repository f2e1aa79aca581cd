import { isObject } from "../platform/lib/json/json.ts";
import type { Thread } from "./contract/records.ts";

/** Parts of a thread by path, such as `values.messages[-1].content`; null where there is nothing. */
export function extractPaths(thread: Thread, paths: Record<string, string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(paths).map(([alias, path]) => [alias, valueAt(thread, path)]));
}

function valueAt(value: unknown, path: string): unknown {
  const steps = path.match(/[^.[\]]+/g) ?? [];
  let current = value;
  for (const step of steps) {
    if (Array.isArray(current)) current = current.at(Number(step));
    else if (isObject(current) && Object.hasOwn(current, step)) current = current[step];
    else return null;
  }
  return current ?? null;
}
