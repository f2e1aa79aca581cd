/**
 * A Threadmill whose router leads to servers that others have started. Prints where as JSON, in one line.
 *
 * Started as: node bench/router-process.ts '{"data": "<folder>"}'
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { readConfig } from "../src/config/config.ts";
import { listen, startThreadmill } from "../src/main.ts";
import { createLog } from "../src/platform/lib/log.ts";

/** What the process that starts this one tells it. */
export interface RouterOrder {
  /** A folder for its data. */
  data: string;
}

export interface RouterStarted {
  port: number;
  /** Of the deployment. */
  path: string;
  /** A key that opens it. */
  key: string;
  /** Where its instances are said: the address of one, as the body of a POST. The answer comes when requests go there. */
  switch_port: number;
}

const { data } = JSON.parse(process.argv[2] ?? "{}") as RouterOrder;
const config = readConfig(
  "dev",
  { config: join(import.meta.dirname, "graphs/langgraph.json"), data, port: "0", logLevel: "error" },
  {},
);
const threadmill = await startThreadmill(config, createLog("error"));
const { url } = await listen(config, threadmill);

async function make(path: string, body: object, key = ""): Promise<Record<string, string>> {
  const headers = { "content-type": "application/json", "x-api-key": key };
  const made = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (made.status !== 201) throw new Error(`POST ${path} answered ${made.status}: ${await made.text()}`);
  return (await made.json()) as Record<string, string>;
}

const { key } = (await make("/admin/keys", { name: "bench", user_id: "bench" })) as { key: string };
const wishes = { name: "bench", source: "internal_source", source_config: {}, source_revision_config: {} };
const { id } = (await make("/v2/deployments", wishes, key)) as { id: string };

let switches = 0;
const switcher = createServer(async (request, response) => {
  const address = await text(request);
  threadmill.router.activate(id, [{ instance_id: `instance-${++switches}`, address, api_key: "none" }]);
  response.end();
}).listen(0, "127.0.0.1");

switcher.once("listening", () => {
  const { port: switch_port } = switcher.address() as AddressInfo;
  const started: RouterStarted = { port: Number(new URL(url).port), path: "/deployments/bench", key, switch_port };
  console.log(JSON.stringify(started));
});
