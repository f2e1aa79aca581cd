import { setTimeout as pause } from "node:timers/promises";
import { WebSocket } from "ws";
import { parseSse } from "../support/sse.ts";
import type { Complaint } from "./reader.ts";

export const TRANSPORTS = ["sse", "websocket"] as const;
type Transport = (typeof TRANSPORTS)[number];

/** Content by event ID, in the order of the events. */
export type ThreadEvents = Map<string, string>;

interface ProtocolEvent {
  event_id: string;
  seq: number;
  method: string;
  params: { timestamp: number; namespace: string[]; data: { event?: string } };
}

/**
 * Reads a thread from its start to the end of its first run over the thread protocol. When the connection breaks, it continues after the
 * last `seq`.
 *
 * @param url of the thread
 * @param undone is aborted when the run was undone: a reader that was not connected then is told of no end
 */
export async function readThread(
  url: string,
  transport: Transport,
  onEvent: () => void,
  undone: AbortSignal,
): Promise<{ events: ThreadEvents; complaints: Complaint[] }> {
  const events: ThreadEvents = new Map();
  const complaints: Complaint[] = [];
  const over = new AbortController();
  undone.addEventListener("abort", () => over.abort());
  let since = 0;
  const take = (text: string) => {
    const { event_id, seq, method, params } = JSON.parse(text) as ProtocolEvent;
    const { timestamp: _, ...content } = params;
    if (seq <= since) complaints.push(`${transport}: after seq ${since} came ${seq} (${method})`);
    if (events.has(event_id)) complaints.push(`${transport}: ${event_id} came twice`);
    since = seq;
    events.set(event_id, JSON.stringify([method, content]));
    if (method === "lifecycle" && content.namespace.length === 0 && content.data.event !== "running") over.abort();
    onEvent();
  };
  const read = { sse: readSse, websocket: readSocket }[transport];
  while (!over.signal.aborted) {
    // The connection is refused or breaks while the server is killed.
    await read(`${url}/stream/events`, { channels: CHANNELS, since }, take, over.signal).catch(() => undefined);
    if (!over.signal.aborted) await pause(5);
  }
  return { events, complaints };
}

const CHANNELS = ["lifecycle", "values", "custom"];

type Read = (url: string, selection: object, take: (text: string) => void, signal: AbortSignal) => Promise<void>;

const readSse: Read = async (url, selection, take, signal) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(selection), signal });
  if (response.status !== 200) return;
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream() as never) ?? []) {
    text += chunk;
    const end = text.lastIndexOf("\n\n") + 2;
    for (const { data } of parseSse(text.slice(0, end))) take(JSON.stringify(data));
    text = text.slice(end);
  }
};

const readSocket: Read = (url, selection, take, signal) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace("http:", "ws:"));
    signal.addEventListener("abort", () => socket.terminate());
    const subscribe = { id: 1, method: "subscription.subscribe", params: selection };
    socket.on("open", () => socket.send(JSON.stringify(subscribe)));
    socket.on("message", (data) => {
      const text = String(data);
      if (text.startsWith('{"type":"event"')) take(text);
    });
    socket.on("error", reject);
    socket.on("close", () => resolve());
  });
