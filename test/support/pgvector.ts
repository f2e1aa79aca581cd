import { execFile, spawn } from "node:child_process";
import { chownSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { madeOnce } from "./made-once.ts";
import { execute } from "./postgres.ts";
import { freePort } from "./process.ts";
import { until } from "./until.ts";

const run = promisify(execFile);

/** Brings Postgres 16.2 with pgvector 0.6.2. */
const PACKAGE = "pgserver==0.1.4";

/** Postgres refuses to run as root. */
const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

export interface PgvectorServer {
  /** Of a user who may create databases and the extension. */
  url: string;
  stop(): Promise<void>;
}

/** Starts a Postgres that has the extension pgvector. @returns undefined when this machine cannot have one, which is said */
export async function startPgvector(): Promise<PgvectorServer | undefined> {
  const env = await madeOnce({
    client: "Search with pgvector",
    folder_prefix: "pgvector",
    made_of: PACKAGE,
    make: makeEnv,
  });
  if (env === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "threadmill-pgvector-"));
  if (USER.uid !== undefined) chownSync(folder, USER.uid, USER.gid);
  const data = join(folder, "data");
  const options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"];
  await run(programOf(env, "initdb"), ["-D", data, ...options], { ...USER, cwd: folder });
  const port = await freePort();
  const child = spawn(programOf(env, "postgres"), ["-D", data, "-k", folder, "-p", String(port), "-F"], {
    ...USER,
    cwd: folder,
    stdio: "ignore",
  });
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const isUp = () => execute(url, "select 1").catch(() => undefined);
  await until("Postgres answers", isUp);
  return {
    url,
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      // Disconnects all clients.
      child.kill("SIGINT");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function makeEnv(folder: string): Promise<void> {
  try {
    await run("python3", ["-m", "venv", folder]);
    await run(join(folder, "bin/python"), ["-m", "pip", "install", "--quiet", PACKAGE]);
    await run(programOf(folder, "initdb"), ["--version"], { ...USER, cwd: tmpdir() });
  } catch (error) {
    const reason = ((error as { stderr?: string }).stderr || String(error)).trim().split("\n").at(-1);
    throw new Error(
      `${PACKAGE}, which brings a Postgres with pgvector, could not be installed (${reason}). It needs python3 with the venv module and PyPI or a mirror (PIP_INDEX_URL).`,
    );
  }
}

function programOf(env: string, name: string): string {
  const lib = join(env, "lib");
  // The folder of the version of Python.
  return join(lib, readdirSync(lib)[0] as string, "site-packages/pgserver/pginstall/bin", name);
}
