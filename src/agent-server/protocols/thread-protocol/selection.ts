import type { EventSelection } from "../../contract/thread-protocol.ts";
import type { ProtocolEvent } from "./protocol-events.ts";

type Filter = Pick<EventSelection, "channels" | "namespaces" | "depth">;

/** Returns a function that tests whether events are selected. */
export function selector({ channels, namespaces = [], depth = Infinity }: Filter): (event: ProtocolEvent) => boolean {
  const wanted = new Set(channels);
  const isBelow = (namespace: readonly string[], prefix: readonly string[]) =>
    namespace.length - prefix.length <= depth &&
    prefix.every((segment, i) => namespace[i] !== undefined && matches(namespace[i], segment));
  return ({ channels, namespace }) =>
    channels.some((channel) => wanted.has(channel)) &&
    (namespaces.length === 0 || namespaces.some((prefix) => isBelow(namespace, prefix)));
}

/** A segment is `node:task_id`. A wanted segment without a task matches all tasks of the node. */
const matches = (segment: string, wanted: string): boolean =>
  segment === wanted || (!wanted.includes(":") && segment.slice(0, segment.indexOf(":")) === wanted);
