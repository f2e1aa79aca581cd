import { once } from "node:events";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { bundledProgram } from "../test/support/program.ts";
import type { FloorOptions } from "./floor.ts";
import { HttpTarget, type ServerProcess } from "./http-target.ts";
import type { Measurement, Sizes, Values } from "./measurement.ts";
import { installPeer, peerModules } from "./peer-install.ts";
import { BENCH_DATABASE, createDatabase, query } from "./postgres.ts";
import { start, temporaryFolder } from "./processes.ts";
import { startServer } from "./servers.ts";

/** A program that is measured. */
export interface Subject {
  name: SubjectName;
  /** Description in the report. */
  about: string;
  /** Prepares the measurements. If it fails, the subject is skipped. */
  prepare?(): Promise<void>;
  /** Takes one measurement in a new process. */
  measure(measurement: Measurement, sizes: Sizes): Promise<Values>;
}

export type SubjectName = "threadmill-normal" | "threadmill-full" | "threadmill-postgres" | "floor" | "peer";

const root = join(import.meta.dirname, "..");
const graphs = join(import.meta.dirname, "graphs");

/** Threadmill as `dev` or `serve`, which differ in the `synchronous` setting of SQLite. */
function threadmill(command: "dev" | "serve"): Subject {
  const synchronous = command === "dev" ? "normal" : "full";
  const start = async (_: Measurement, env?: Record<string, string>): Promise<ServerProcess> => {
    const data = temporaryFolder();
    const { BENCH_GRAPHS: config = join(graphs, "langgraph.json"), ...variables } = env ?? {};
    const flags = ["--config", config, "--data", data, "--log-level", "error"];
    const file = await bundledProgram();
    const program = (port: number) => [file, command, ...flags, "--port", String(port)];
    const execute = async (statement: string) => {
      const database = new DatabaseSync(join(data, "experiments.db"), { timeout: 10_000 });
      database.exec(statement);
      database.close();
    };
    // The cost of traces is a measurement of its own.
    return { ...(await startServer(program, root, { THREADMILL_TRACING: "off", ...variables })), execute };
  };
  return overHttp(
    `threadmill-${synchronous}`,
    `\`threadmill ${command}\`: SQLite on disk, synchronous=${synchronous}`,
    start,
  );
}

/** Threadmill as `serve` on Postgres. */
const onPostgres: Subject = {
  name: "threadmill-postgres",
  about: "`threadmill serve` on Postgres",
  prepare: async () => void (await query("select 1")),
  async measure(measurement, sizes) {
    const url = await createDatabase(BENCH_DATABASE);
    const file = await bundledProgram();
    const start = ({ BENCH_GRAPHS: config = join(graphs, "langgraph.json"), ...env }: Record<string, string> = {}) => {
      const flags = ["--config", config, "--data", temporaryFolder(), "--database-url", url, "--log-level", "error"];
      const program = (port: number) => [file, "serve", ...flags, "--port", String(port)];
      const keys = { THREADMILL_ENCRYPTION_KEYS: Buffer.alloc(32).toString("base64") };
      return startServer(program, root, { ...keys, ...env });
    };
    const execute = async (statement: string) => void (await query(statement, url));
    return measurement.measure(async (env) => new HttpTarget({ ...(await start(env)), execute }), sizes);
  },
};

/** The development server of LangGraph. */
const peer: Subject = {
  ...overHttp(
    "peer",
    "the in-memory development server of @langchain/langgraph-api 1.5.1, ten workers",
    (measurement) => {
      // The peer stores data in its working directory and resolves packages from it, so each start gets a new one.
      const cwd = temporaryFolder();
      cpSync(graphs, cwd, { recursive: true });
      cpSync(join(import.meta.dirname, "peer-server.mjs"), join(cwd, "peer-server.mjs"));
      writeFileSync(join(cwd, "package.json"), JSON.stringify({ type: "module" }));
      symlinkSync(peerModules, join(cwd, "node_modules"), "junction");
      // The start is measured as users run it, with the loader and watcher of its command line. All else runs without them, which is
      // faster.
      const flags = measurement.name === "startup" ? ["as-its-command-line"] : [];
      return startServer((port) => ["peer-server.mjs", String(port), ...flags], cwd);
    },
  ),
  prepare: installPeer,
};

function overHttp(
  name: SubjectName,
  about: string,
  start: (measurement: Measurement, env?: Record<string, string>) => Promise<ServerProcess>,
): Subject {
  const measure = (measurement: Measurement, sizes: Sizes) =>
    measurement.measure(async (env) => new HttpTarget(await start(measurement, env)), sizes);
  return { name, about, measure };
}

/** LangGraph alone. The measurement runs in the child process. */
const floor: Subject = {
  name: "floor",
  about: "LangGraph alone in a bare Node.js process with a MemorySaver: no HTTP, nothing stored",
  async measure(measurement, sizes) {
    const options: FloorOptions = {
      measurement: measurement.name,
      sizes,
      spawned_at: performance.timeOrigin + performance.now(),
    };
    const { child, stderrTail } = start([join(import.meta.dirname, "floor.ts"), JSON.stringify(options)], {
      cwd: root,
      output: true,
    });
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    const [status] = await once(child, "close");
    if (status !== 0) throw new Error(`The floor process exited with ${status}: ${stderrTail()}`);
    return JSON.parse(output) as Values;
  },
};

export const subjects: readonly Subject[] = [threadmill("dev"), threadmill("serve"), onPostgres, floor, peer];
