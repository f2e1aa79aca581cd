/**
 * Threadmill with a router to servers that the parent process has started. Prints its addresses as one line of JSON.
 *
 * Usage: node bench/router-process.ts '{"data": "<folder>"}'
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { readConfig } from "../src/config/config.ts";
import { listen, startThreadmill } from "../src/main.ts";
import { createLog } from "../src/platform/lib/log.ts";

/** The argument of the process. */
export interface RouterOptions {
  /** The data folder. */
  data: string;
}

export interface RouterStarted {
  port: number;
  /** Path of the deployment. */
  path: string;
  /** API key for the deployment. */
  key: string;
  /** A POST with the address of an instance activates it. The response is sent after the switch. */
  switch_port: number;
}

const { data } = JSON.parse(process.argv[2] ?? "{}") as RouterOptions;
const config = readConfig(
  "dev",
  { config: join(import.meta.dirname, "graphs/langgraph.json"), data, port: "0", logLevel: "error" },
  {},
);
const threadmill = await startThreadmill(config, createLog("error"));
const { url } = await listen(config, threadmill);

async function create(path: string, body: object, key = ""): Promise<Record<string, string>> {
  const headers = { "content-type": "application/json", "x-api-key": key };
  const created = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (created.status !== 201) throw new Error(`POST ${path} answered ${created.status}: ${await created.text()}`);
  return (await created.json()) as Record<string, string>;
}

const { key } = (await create("/admin/keys", {
  name: "bench",
  user_id: "bench",
  scopes: ["agents", "deployments"],
})) as { key: string };
const body = { name: "bench", source: "internal_source", source_config: {}, source_revision_config: {} };
const { id } = (await create("/v2/deployments", body, key)) as { id: string };

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
