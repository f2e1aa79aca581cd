import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { freePort } from "./process.ts";
import { until } from "./until.ts";

const PROGRAM = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((file) => existsSync(file));

export const hasPgBouncer = (): boolean => PROGRAM !== undefined;

const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));

/** PgBouncer in transaction mode, with fewer connections to each database than a process of the service has. */
export class PgBouncer {
  readonly #dir: string;
  readonly #child: ChildProcess;
  readonly #port: number;

  private constructor(dir: string, child: ChildProcess, port: number) {
    this.#dir = dir;
    this.#child = child;
    this.#port = port;
  }

  /** @param server URL of the Postgres server, without a password */
  static async start(server: string): Promise<PgBouncer> {
    const { hostname, port, username } = new URL(server);
    const dir = mkdtempSync(join(tmpdir(), "threadmill-pgbouncer-"));
    const own = await freePort();
    const settings = {
      ...{ listen_addr: "127.0.0.1", listen_port: own, unix_socket_dir: "", auth_type: "any", admin_users: "admin" },
      ...{ pool_mode: "transaction", default_pool_size: 5, max_client_conn: 500 },
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
    const database = `* = host=${hostname} port=${port || 5432} user=${username}`;
    const file = join(dir, "pgbouncer.ini");
    writeFileSync(file, ["[databases]", database, "[pgbouncer]", ...lines, ""].join("\n"));
    // It refuses to run as root.
    const as = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
    if (as.uid !== undefined) for (const path of [dir, file]) chownSync(path, as.uid, as.gid);
    const child = spawn(PROGRAM as string, [file], { stdio: "ignore", ...as });
    const bouncer = new PgBouncer(dir, child, own);
    await until("PgBouncer accepts connections", () => bouncer.transactions().then(Boolean, () => false));
    return bouncer;
  }

  urlOf(database: string): string {
    const url = new URL(database);
    url.host = `127.0.0.1:${this.#port}`;
    return url.href;
  }

  /** The number of transactions so far, in all databases, beginning with 1. */
  async transactions(): Promise<number> {
    const client = new pg.Client(`postgres://admin@127.0.0.1:${this.#port}/pgbouncer`);
    await client.connect();
    try {
      const { rows } = await client.query("show stats");
      return rows.reduce((sum: number, { total_xact_count }) => sum + Number(total_xact_count), 1);
    } finally {
      await client.end();
    }
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
