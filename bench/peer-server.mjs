/**
 * Starts the peer: the in-memory development server of @langchain/langgraph-api. The benchmark copies this file and
 * the graphs into a folder from which an installation of it can be resolved, the working directory.
 *
 * Started as: node peer-server.mjs <port> [as-its-command-line]
 */
import { readFileSync } from "node:fs";
import { spawnServer } from "@langchain/langgraph-api";
import { startServer } from "@langchain/langgraph-api/server";

const { graphs } = JSON.parse(readFileSync("langgraph.json", "utf8"));
const [, , port, how] = process.argv;
const host = "127.0.0.1";
const cwd = process.cwd();
// Ten workers are what its own command line starts.
if (how === "as-its-command-line") {
  const context = { config: { graphs }, env: process.env, hostUrl: "http://127.0.0.1" };
  const child = await spawnServer({ host, port, nJobsPerWorker: "10" }, context, { pid: process.pid, projectCwd: cwd });
  process.on("SIGTERM", () => child.kill("SIGTERM")); // its watcher passes it on
  child.on("exit", () => process.exit(0));
} else {
  await startServer({ port: Number(port), nWorkers: 10, host, cwd, graphs });
}
