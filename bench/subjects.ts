import { once } from "node:events";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { FloorOrder } from "./floor.ts";
import { HttpTarget, type ServerProcess } from "./http-target.ts";
import type { Measurement, Sizes, Values } from "./measurement.ts";
import { installPeer, peerModules } from "./peer-install.ts";
import { start, temporaryFolder } from "./processes.ts";
import { startServer } from "./servers.ts";

/** Something that is measured. */
export interface Subject {
  name: SubjectName;
  /** For the head of the report. */
  about: string;
  /** Makes it ready to be measured; when that fails, it is left out. */
  prepare?(): Promise<void>;
  /** Takes one measurement of it, in a fresh process. */
  measure(measurement: Measurement, sizes: Sizes): Promise<Values>;
}

export type SubjectName = "threadmill-normal" | "threadmill-full" | "threadmill-postgres" | "floor" | "peer";

const root = join(import.meta.dirname, "..");
const graphs = join(import.meta.dirname, "graphs");

/** Threadmill as `dev` or as `serve`, which differ in how careful SQLite is. */
function threadmill(command: "dev" | "serve"): Subject {
  const synchronous = command === "dev" ? "normal" : "full";
  const start = () => {
    const flags = ["--config", join(graphs, "langgraph.json"), "--data", temporaryFolder(), "--log-level", "error"];
    return startServer((port) => [join(root, "bin/threadmill.js"), command, ...flags, "--port", String(port)], root);
  };
  return overHttp(
    `threadmill-${synchronous}`,
    `\`threadmill ${command}\`: SQLite on disk, synchronous=${synchronous}`,
    start,
  );
}

/** A database of its own is made for it on this server, which must be there. */
const POSTGRES = process.env.BENCH_DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/postgres";
const POSTGRES_DATABASE = "threadmill_bench";

/** Threadmill as `serve` on Postgres. */
const onPostgres: Subject = {
  name: "threadmill-postgres",
  about: "`threadmill serve` on Postgres",
  prepare: () => query("select 1"),
  async measure(measurement, sizes) {
    await query(`drop database if exists ${POSTGRES_DATABASE} with (force)`);
    await query(`create database ${POSTGRES_DATABASE}`);
    const url = new URL(POSTGRES);
    url.pathname = `/${POSTGRES_DATABASE}`;
    const flags = ["--config", join(graphs, "langgraph.json"), "--data", temporaryFolder(), "--log-level", "error"];
    const start = () =>
      startServer(
        (port) => [
          join(root, "bin/threadmill.js"),
          "serve",
          ...flags,
          "--database-url",
          url.href,
          "--port",
          String(port),
        ],
        root,
        { THREADMILL_ENCRYPTION_KEYS: Buffer.alloc(32).toString("base64") },
      );
    return measurement.measure(async () => new HttpTarget(await start()), sizes);
  },
};

async function query(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: POSTGRES });
  await client.connect();
  await client.query(statement);
  await client.end();
}

/** The server that people would otherwise develop with. */
const peer: Subject = {
  ...overHttp(
    "peer",
    "the in-memory development server of @langchain/langgraph-api 1.5.1, ten workers",
    (measurement) => {
      // It keeps its data in its working directory and looks for packages from there: a fresh one each time.
      const cwd = temporaryFolder();
      cpSync(graphs, cwd, { recursive: true });
      cpSync(join(import.meta.dirname, "peer-server.mjs"), join(cwd, "peer-server.mjs"));
      writeFileSync(join(cwd, "package.json"), JSON.stringify({ type: "module" }));
      symlinkSync(peerModules, join(cwd, "node_modules"), "junction");
      // Its start-up is measured as its users have it, through its own command line's loader and watcher; everything
      // else without them, which is kinder to it.
      const how = measurement.name === "startup" ? ["as-its-command-line"] : [];
      return startServer((port) => ["peer-server.mjs", String(port), ...how], cwd);
    },
  ),
  prepare: installPeer,
};

function overHttp(
  name: SubjectName,
  about: string,
  start: (measurement: Measurement) => Promise<ServerProcess>,
): Subject {
  const measure = (measurement: Measurement, sizes: Sizes) =>
    measurement.measure(async () => new HttpTarget(await start(measurement)), sizes);
  return { name, about, measure };
}

/** LangGraph alone. The measurement itself runs in the other process. */
const floor: Subject = {
  name: "floor",
  about: "LangGraph alone in a bare Node.js process with a MemorySaver: no HTTP, nothing kept",
  async measure(measurement, sizes) {
    const order: FloorOrder = {
      measurement: measurement.name,
      sizes,
      spawned_at: performance.timeOrigin + performance.now(),
    };
    const { child, complaints } = start([join(import.meta.dirname, "floor.ts"), JSON.stringify(order)], {
      cwd: root,
      output: true,
    });
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    const [status] = await once(child, "close");
    if (status !== 0) throw new Error(`The floor's process ended with ${status}: ${complaints()}`);
    return JSON.parse(output) as Values;
  },
};

export const subjects: readonly Subject[] = [threadmill("dev"), threadmill("serve"), onPostgres, floor, peer];
