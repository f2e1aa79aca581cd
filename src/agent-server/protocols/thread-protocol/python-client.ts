import type { ProtocolEvent } from "./protocol-events.ts";

// What the Python client expects otherwise than the JavaScript client.

/**
 * Which newest run a stream without a position begins with, if the run has ended: any, a recent one, or the thread's first one whose end
 * no client of this process has read.
 */
export type Replay = "ended" | "recent" | "unread";

/** Its WebSockets have the header of the package `websockets`. */
export const isPythonClient = (user_agent: string | undefined): boolean =>
  /^(langgraph-sdk-py\/|Python\/\S+ websockets\/)/.test(user_agent ?? "");

/**
 * The client ignores no event that it has seen on another connection, and takes the end of any run for the end of its own. One of its
 * streams has only that purpose. It opens that one before the start of a run if the caller has named the thread, else after it.
 */
export const replayForPython = (channels: readonly string[]): Replay =>
  channels.every((channel) => channel === "lifecycle" || channel === "input") ? "unread" : "recent";

const adapted = new WeakMap<ProtocolEvent, ProtocolEvent>();

/** Gives messages the namespace of their graph, instead of that of their node in it. */
export function toPythonEvent(event: ProtocolEvent): ProtocolEvent {
  if (event.event !== "messages" || event.namespace.length === 0) return event;
  const known = adapted.get(event);
  if (known) return known;
  const namespace = event.namespace.slice(0, -1);
  const textOf = (names: readonly string[]) => `"params":{"namespace":${JSON.stringify(names)}`;
  const data = event.data.replace(textOf(event.namespace), () => textOf(namespace));
  const result = { ...event, namespace, data };
  adapted.set(event, result);
  return result;
}
