import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { until } from "./until.ts";

const KEY = Buffer.from("a key of at least 24 bytes, for tests");
export const WEBHOOK_SECRET = `whsec_${KEY.toString("base64")}`;

export interface ReceivedWebhook {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any;
}

export interface WebhookReceiver {
  /** A URL at which the receiver answers with a status, and one of its own for each name. */
  at(name: string): string;
  /** The status for later requests to a URL; null: it never answers. Default: 204. */
  answer(name: string, status: number | null): void;
  /** The requests to a URL, in their order. */
  of(name: string): ReceivedWebhook[];
  /** The maximum number of requests that were open at the same time. */
  maxOpen(): number;
  /** Waits for the nth request to a URL. */
  nth(name: string, n?: number): Promise<ReceivedWebhook>;
  close(): Promise<void>;
}

/**
 * A server that records the webhooks that it receives.
 *
 * @param onRequest called before the answer, which waits for it
 */
export async function startReceiver(
  onRequest?: (request: ReceivedWebhook) => void | Promise<void>,
): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const statuses = new Map<string, number | null>();
  let [open, max_open] = [0, 0];
  const server = createServer(async (request, response) => {
    max_open = Math.max(max_open, ++open);
    response.on("close", () => open--);
    const body = await text(request);
    const path = request.url ?? "";
    const webhook = { path, headers: request.headers, text: body, body: JSON.parse(body) };
    received.push(webhook);
    await onRequest?.(webhook);
    const status = statuses.get(path);
    if (status === null) return;
    response.writeHead(status ?? 204, { location: "/moved" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const of = (name: string) => received.filter(({ path }) => path === `/${name}`);
  return {
    at: (name) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}`,
    answer: (name, status) => void statuses.set(`/${name}`, status),
    of,
    maxOpen: () => max_open,
    nth: (name, n = 1) => until(`webhook ${n} of ${name} is there`, async () => of(name)[n - 1]),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** The signature that Standard Webhooks prescribes for a request. */
export function signatureOf({ headers, text: body }: ReceivedWebhook): string {
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return `v1,${createHmac("sha256", KEY).update(signed).digest("base64")}`;
}
