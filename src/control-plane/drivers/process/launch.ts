import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { lchown, mkdir, open } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import type { InstanceOrder } from "../driver.ts";
import { makeHeartbeat, type Orphanhood } from "./heartbeat.ts";
import { titleOf } from "./instance-record.ts";
import type { SystemUser } from "./system-users.ts";

export interface Launch extends Orphanhood {
  order: InstanceOrder;
  /** The executable of Threadmill. */
  program: string;
  /** langgraph.json of the build. */
  config_file: string;
  /** Undefined: the embedded database. */
  database_url: string | undefined;
  log_file: string;
  system_env: Readonly<Record<string, string>>;
  /** Undefined: whom the service runs as. */
  user: SystemUser | undefined;
}

/** A socket that listens on a free port of this machine. */
export interface Listener {
  server: Server;
  port: number;
}

/**
 * The instance inherits the socket, so its port cannot be anybody else's in the meantime, and whoever connects too early waits
 * instead of being refused.
 */
export async function listenForIt(): Promise<Listener> {
  const server = createServer((connection) => connection.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

/** Starts the agent server of a build in a process group of its own, which this process does not take with it when it ends. */
export async function launch(what: Launch, { server, port }: Listener): Promise<ChildProcess> {
  const { order, log_file, config_file, heartbeat_file, user } = what;
  await makeHome(what);
  await mkdir(dirname(log_file), { recursive: true, mode: 0o700 });
  await makeHeartbeat(heartbeat_file);
  const log = await open(log_file, "a", 0o600);
  try {
    const [file, args] = asPrivate([process.execPath, ...argumentsOf(what, port)]);
    const child = spawn(file, args, {
      cwd: dirname(config_file),
      env: environmentOf(what, port),
      ...user,
      detached: true,
      stdio: ["ignore", log.fd, log.fd, descriptorOf(server)],
    });
    if (child.pid === undefined) throw (await once(child, "error"))[0];
    child.unref();
    order.log({ at: Date.now(), level: "INFO", message: `The process ${child.pid} was started on port ${port}.` });
    return child;
  } finally {
    await log.close();
  }
}

/** In the data folder, which is the instance's own: who has it decides what is found under this name. */
async function makeHome({ data_dir, user }: Launch): Promise<void> {
  const home = join(data_dir, "home");
  await mkdir(data_dir, { recursive: true, mode: 0o700 });
  const isNew = await mkdir(home, { mode: 0o700 }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
      return false;
    },
  );
  if (isNew && user) await lchown(home, user.uid, user.gid);
}

/** What it writes is readable to its user alone. The shell replaces itself, so the process is the program. */
const asPrivate = (command: string[]): [string, string[]] => [
  "/bin/sh",
  ["-c", 'umask 077 && exec "$0" "$@"', ...command],
];

function argumentsOf({ order, program, config_file, data_dir, database_url }: Launch, port: number): string[] {
  const { memory_limit_mb, cpu_limit } = order.resources;
  return [
    `--title=${titleOf(order)}`,
    ...(memory_limit_mb === undefined ? [] : [`--max-old-space-size=${memory_limit_mb}`]),
    program,
    "serve",
    ...["--only", "agents"],
    ...["--config", config_file],
    ...["--data", data_dir],
    // The environment may hold a DATABASE_URL that is the graphs' own.
    ...(database_url === undefined ? ["--share-data", "--database-url", ""] : []),
    ...(cpu_limit === undefined ? [] : ["--hosts", String(Math.max(1, Math.floor(cpu_limit)))]),
    ...["--port", String(port)],
    ...["--listen-fd", "3"],
  ];
}

/** Nothing of the service's own: what the system needs, what the deployment has, and what the instance needs to know. */
function environmentOf(what: Launch, port: number): Record<string, string> {
  const { order, system_env, data_dir, database_url, heartbeat_file, orphan_ms } = what;
  const { memory_limit_mb } = order.resources;
  return {
    ...system_env,
    HOME: join(data_dir, "home"),
    ...order.env,
    PATH: system_env.PATH ?? "",
    API_KEYS: order.api_key,
    PORT: String(port),
    THREADMILL_CONTROL_PLANE_FILE: heartbeat_file,
    THREADMILL_DEPLOY_ORPHAN_SECS: String(orphan_ms / 1000),
    ...(memory_limit_mb !== undefined && { THREADMILL_HOST_MEMORY_MB: String(Math.max(64, memory_limit_mb)) }),
    ...(database_url !== undefined && { THREADMILL_DATABASE_URL: database_url }),
  };
}

/** Node hands descriptors of open sockets on, and tells nobody their numbers but in this way. */
function descriptorOf(server: Server): number {
  const { _handle: handle } = server as unknown as { _handle?: { fd?: number } };
  if (handle?.fd === undefined || handle.fd < 0) throw new Error("This system gives sockets no numbers to hand on.");
  return handle.fd;
}
