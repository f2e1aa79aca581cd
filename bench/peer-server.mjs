/**
 * Starts the peer: the in-memory development server of @langchain/langgraph-api. The benchmark copies this file and the graphs into the
 * working directory, from which the packages of the peer are resolved.
 *
 * Usage: node peer-server.mjs <port> [as-its-command-line]
 */
import { readFileSync } from "node:fs";
import { spawnServer } from "@langchain/langgraph-api";
import { startServer } from "@langchain/langgraph-api/server";

const { graphs } = JSON.parse(readFileSync("langgraph.json", "utf8"));
const [, , port, mode] = process.argv;
const host = "127.0.0.1";
const cwd = process.cwd();
// Ten workers, as its command line starts.
if (mode === "as-its-command-line") {
  const context = { config: { graphs }, env: process.env, hostUrl: "http://127.0.0.1" };
  const child = await spawnServer({ host, port, nJobsPerWorker: "10" }, context, { pid: process.pid, projectCwd: cwd });
  process.on("SIGTERM", () => child.kill("SIGTERM")); // the watcher forwards it
  child.on("exit", () => process.exit(0));
} else {
  await startServer({ port: Number(port), nWorkers: 10, host, cwd, graphs });
}
