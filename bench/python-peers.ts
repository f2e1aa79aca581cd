import { execFile } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { findInterpreter, virtualEnvironment } from "../test/support/python.ts";
import { HttpTarget } from "./http-target.ts";
import { start, stop, temporaryFolder } from "./processes.ts";
import { startServer } from "./servers.ts";
import type { Target } from "./target.ts";

const BENCH = import.meta.dirname;
const GRAPHS = join(BENCH, "graphs/python");
const REDIS = process.env.BENCH_REDIS_URL ?? "redis://127.0.0.1:6379/0";
const JOBS = "10";

/** A server for LangGraph graphs in Python. */
export interface PythonPeer {
  key: "aegra" | "graphharbor" | "langgraph";
  label: string;
  start(database_url: string): Promise<Target>;
}

/** Installs a peer into a virtual environment, unless it is there, and returns its interpreter and the path of its program. */
async function install(client: string, name: PythonPeer["key"]): Promise<[python: string, program: string]> {
  const interpreter = await findInterpreter("3.12");
  if (!interpreter) throw new Error(`${client} requires Python 3.12.`);
  const requirements = join(BENCH, "python-peers", `${name}.txt`);
  const folder_prefix = `bench-${name}`;
  const python = await virtualEnvironment({ client, folder_prefix, requirements, oldest: [3, 11], interpreter });
  if (!python) throw new Error(`${client} could not be installed.`);
  // The first line of the program names the folder in which the environment was made.
  return [python, join(python, "..", name)];
}

/** Peers store data in their working directory and read the configuration from it, so each start has a new one. */
function newFolder(config: string): string {
  const cwd = temporaryFolder();
  cpSync(GRAPHS, cwd, { recursive: true });
  const { graphs } = JSON.parse(readFileSync(join(GRAPHS, "langgraph.json"), "utf8"));
  writeFileSync(join(cwd, config), JSON.stringify({ dependencies: ["."], graphs }));
  return cwd;
}

const aegra: PythonPeer = {
  key: "aegra",
  label: "Aegra 0.11.0",
  async start(database_url) {
    const [python] = await install("Aegra", "aegra");
    const env = { DATABASE_URL: withPassword(database_url).href, AEGRA_CONFIG: "aegra.json" };
    // What its command line starts, which would leave this process behind.
    const server = await startServer(
      (port) => ["-m", "uvicorn", "aegra_api.main:app", "--host", "127.0.0.1", "--port", String(port)],
      newFolder("aegra.json"),
      env,
      { program: python, ready_path: "/health" },
    );
    return new HttpTarget(server);
  },
};

const graphHarbor: PythonPeer = {
  key: "graphharbor",
  label: "GraphHarbor 0.13.0",
  async start(database_url) {
    const [python, program] = await install("GraphHarbor", "graphharbor");
    const url = withPassword(database_url);
    url.protocol = "postgresql+asyncpg:";
    const env = { DATABASE_URI: `${url.href}?sslmode=disable`, REDIS_URI: REDIS };
    const cwd = newFolder("langgraph.json");
    await promisify(execFile)(python, [program, "migrate", "upgrade"], { cwd, env: { ...process.env, ...env } });
    const jobs = ["--n-jobs-per-worker", JOBS];
    const worker = start([program, "worker", ...jobs], { command: python, cwd, env });
    const args = (port: number) => [program, "serve", "--no-browser", "--port", String(port), ...jobs];
    const server = await startServer(args, cwd, env, { program: python });
    return new HttpTarget({
      ...server,
      stop: async () => {
        await stop(worker);
        await server.stop();
      },
    });
  },
};

/** The development server of LangGraph, which stores nothing in a database. */
const langGraph: PythonPeer = {
  key: "langgraph",
  label: "langgraph dev (langgraph-api 0.16.7, in memory)",
  async start() {
    const [python, program] = await install("LangGraph's development server", "langgraph");
    const server = await startServer(
      (port) => [program, "dev", "--no-browser", "--no-reload", "--port", String(port), "--n-jobs-per-worker", JOBS],
      newFolder("langgraph.json"),
      { LANGGRAPH_CLI_NO_ANALYTICS: "1" },
      { program: python },
    );
    return new HttpTarget(server);
  },
};

/** Aegra and GraphHarbor refuse a URL without a password. */
function withPassword(database_url: string): URL {
  const url = new URL(database_url);
  url.password ||= "postgres";
  return url;
}

export const pythonPeers: readonly PythonPeer[] = [aegra, graphHarbor, langGraph];
