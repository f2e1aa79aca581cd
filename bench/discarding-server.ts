/**
 * The floor of the clients of experiments: answers what they read from memory, after its first request from a real service, and
 * discards what they write.
 *
 * Usage: node bench/discarding-server.ts PORT SERVICE_URL
 */
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

const [, , port, service] = process.argv;
const known = new Map<string, { status: number; text: string }>();

createServer(async (request, response) => {
  const { method = "", url = "" } = request;
  const body = await buffer(request);
  const send = (status: number, text: string) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(text);
  };
  if (url === "/ok") return send(200, "{}");
  if (/\/runs\/(multipart|batch)$/.test(url)) return send(202, "{}");
  if (url.endsWith("/feedback")) return send(200, body.toString());
  if (method === "PATCH") return send(200, "{}");
  const key = `${method} ${url}`;
  // The experiments that `evaluate()` creates differ in their names.
  const isKnown = method === "GET" && known.has(key);
  const found = isKnown ? known.get(key) : await forward(method, url, body);
  known.set(key, found as { status: number; text: string });
  send(found?.status ?? 500, found?.text ?? "");
}).listen(Number(port), "127.0.0.1");

async function forward(method: string, url: string, body: Buffer): Promise<{ status: number; text: string }> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${service}${url}`, {
    method,
    headers,
    ...(body.length > 0 && { body: new Uint8Array(body) }),
  });
  return { status: answer.status, text: await answer.text() };
}
