import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a service was sent. */
export interface Recorded {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
  body: any;
  bytes: number;
}

/** A server that keeps what it is sent and answers as it is told: for what the real service would not show. */
export interface Recorder {
  url: string;
  /** Whole requests, in order. */
  requests: Recorded[];
  /** Requests whose client hung up before the end. */
  aborted: number;
  /** What is answered to the next ones: a text is no JSON, and a function says it by the request. */
  answer(status: number, body: unknown): void;
  /** Answers at once and hangs up, without reading what it is sent. */
  refuseEarly(status: number, body: unknown): void;
  stop(): Promise<void>;
}

/** What the service answers to an upload, as far as anybody reads it. */
export const STORED = {
  dataset: { id: "11111111-1111-4111-8111-111111111111", tenant_id: "tenant-1", name: "capitals" },
  experiment: { id: "22222222-2222-4222-8222-222222222222", tenant_id: "tenant-1", name: "run 1" },
};

export async function startRecorder(): Promise<Recorder> {
  let status = 200;
  let answer: unknown = STORED;
  let isEarly = false;
  const send = (response: ServerResponse, request?: Recorded) => {
    const [code, body] = typeof answer === "function" ? answer(request) : [status, answer];
    const isText = typeof body === "string";
    response.writeHead(code, { "content-type": isText ? "text/html" : "application/json" });
    response.end(isText ? body : JSON.stringify(body));
  };
  const server = createServer((request, response) => {
    if (isEarly) {
      response.on("finish", () => request.socket.end());
      return send(response);
    }
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("close", () => {
      if (!request.complete) recorder.aborted++;
    });
    request.on("end", () => {
      const text = Buffer.concat(parts).toString();
      const { method = "", url = "", headers } = request;
      const recorded = { method, path: url, headers, body: text && JSON.parse(text), bytes: text.length };
      recorder.requests.push(recorded);
      send(response, recorded);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const recorder: Recorder = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    aborted: 0,
    answer(next, body) {
      [status, answer, isEarly] = [next, body, false];
    },
    refuseEarly(next, body) {
      [status, answer, isEarly] = [next, body, true];
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return recorder;
}
