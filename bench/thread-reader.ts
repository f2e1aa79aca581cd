import { request } from "node:http";
import { WebSocket } from "ws";
import type { StreamListener } from "./stream-reader.ts";

export type Transport = "sse" | "websocket";

export interface ThreadAddress {
  port: number;
  /** `/threads/{thread_id}/stream/events` */
  path: string;
  transport: Transport;
}

/** All events of the thread from its start. */
const SELECTION = { channels: ["custom", "lifecycle"], since: 0 };

/** Reads custom events of the thread protocol from the start of the thread to the end of its first run. */
export function readThread(address: ThreadAddress, listener: StreamListener): void {
  let isOver = false;
  let close: () => void = () => undefined;
  const end = (error?: Error) => {
    if (isOver) return;
    isOver = true;
    close();
    listener.onEnd(error);
  };
  const onEvent = (text: string) => {
    if (isOver) return;
    if (text.includes('"method":"custom"')) listener.onEvent(text);
    else if (/"method":"lifecycle","params":\{"namespace":\[\].*"event":"completed"/.test(text)) end();
  };
  const callbacks = { onOpen: () => listener.onOpen?.(), onEvent, onEnd: end };
  close = address.transport === "sse" ? readSse(address, callbacks) : readSocket(address, callbacks);
}

interface Callbacks {
  onOpen(): void;
  onEvent(text: string): void;
  onEnd(error: Error): void;
}

const CLOSED = "The connection was closed before the end of the run.";

function readSse({ port, path }: ThreadAddress, { onOpen, onEvent, onEnd }: Callbacks): () => void {
  const body = JSON.stringify(SELECTION);
  const headers = { "content-type": "application/json", "content-length": body.length };
  const sent = request({ host: "127.0.0.1", port, path, method: "POST", headers, agent: false }, (response) => {
    let rest = "";
    onOpen();
    response.setEncoding("utf8");
    response.on("data", (text: string) => {
      const parts = (rest + text).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) onEvent(part);
    });
    response.on("close", () => onEnd(new Error(CLOSED)));
  });
  sent.on("error", onEnd);
  sent.end(body);
  return () => sent.destroy();
}

function readSocket({ port, path }: ThreadAddress, { onOpen, onEvent, onEnd }: Callbacks): () => void {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`);
  socket.on("open", () => socket.send(JSON.stringify({ id: 1, method: "subscription.subscribe", params: SELECTION })));
  socket.on("message", (data) => {
    const text = String(data);
    if (text.startsWith('{"type":"event"')) onEvent(text);
    else onOpen();
  });
  socket.on("error", onEnd);
  socket.on("close", () => onEnd(new Error(CLOSED)));
  return () => socket.terminate();
}

/** Checks that `seq` increases and that no event ID is repeated, and counts the custom events. */
export class ThreadContinuity {
  custom = 0;
  /** Events that are out of order or repeated. */
  gaps = 0;
  #last = -1;

  add(event: string): void {
    this.custom += 1;
    const from = event.indexOf('"seq":') + 6;
    const seq = Number.parseInt(event.slice(from, from + 20), 10);
    if (!(seq > this.#last)) this.gaps += 1;
    this.#last = seq;
  }
}
