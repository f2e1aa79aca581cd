import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execute } from "../support/postgres.ts";
import { freePort } from "../support/process.ts";
import { until } from "../support/until.ts";

/** Debian keeps the programs of a server out of the PATH. */
const DEBIAN = "/usr/lib/postgresql";

const folder = (): string => {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.length > 0 ? join(DEBIAN, versions[0] as string, "bin") : "";
};

/** Whether this machine has the programs of a Postgres server. */
export const hasPostgresServer = (): boolean => folder() !== "" || existsSync("/usr/bin/initdb");

/** A Postgres server of one's own, with a database "faults" for a user without privileges. */
export class PostgresServer {
  readonly #dir = mkdtempSync(join(tmpdir(), "threadmill-postgres-"));
  readonly #port: number;

  private constructor(port: number) {
    this.#port = port;
    // The server refuses to run as root.
    if (process.getuid?.() === 0) chownSync(this.#dir, this.#idOf("-u"), this.#idOf("-g"));
  }

  static async start(): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort());
    await server.#create();
    return server;
  }

  get url(): string {
    return `postgres://faults@127.0.0.1:${this.#port}/faults`;
  }

  get #admin(): string {
    return `postgres://postgres@127.0.0.1:${this.#port}/postgres`;
  }

  async #create(): Promise<void> {
    this.#run("initdb", ["-D", this.#dir, "-U", "postgres", "-A", "trust", "--no-sync"]);
    this.up();
    await execute(this.#admin, "create role faults login");
    await execute(this.#admin, "create database faults owner faults");
  }

  /** A standby of this server, which from then on acknowledges no commit that the standby does not have. */
  async standby(): Promise<PostgresServer> {
    const standby = new PostgresServer(await freePort());
    const source = `host=127.0.0.1 port=${this.#port} user=postgres application_name=standby`;
    standby.#run("pg_basebackup", ["-d", source, "-D", standby.#dir, "-R", "-X", "stream", "-c", "fast", "--no-sync"]);
    standby.up();
    await execute(this.#admin, "alter system set synchronous_standby_names = 'standby'");
    await execute(this.#admin, "select pg_reload_conf()");
    const states = "select from pg_stat_replication where sync_state = 'sync'";
    await until("the standby has all commits", async () => (await execute(this.#admin, states)).length === 1);
    return standby;
  }

  /** Makes a standby take writes. */
  promote(): void {
    this.#run("pg_ctl", ["-D", this.#dir, "-w", "promote"]);
  }

  /** Resolved when it takes connections; `fsync` stays on. */
  up({ max_connections = 100 } = {}): void {
    const options = `-p ${this.#port} -k ${this.#dir} -h 127.0.0.1 -c max_connections=${max_connections}`;
    this.#run("pg_ctl", ["-D", this.#dir, "-l", join(this.#dir, "log"), "-w", "-o", options, "start"]);
  }

  /** `immediate`: as by a crash. */
  down(mode: "fast" | "immediate"): void {
    this.#run("pg_ctl", ["-D", this.#dir, "-m", mode, "-w", "stop"]);
  }

  remove(): void {
    this.down("immediate");
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));

  #run(program: string, args: string[]): void {
    const isRoot = process.getuid?.() === 0;
    const as = isRoot ? { uid: this.#idOf("-u"), gid: this.#idOf("-g") } : {};
    execFileSync(join(folder(), program), args, { cwd: this.#dir, stdio: "ignore", ...as });
  }
}
