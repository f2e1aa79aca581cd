import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { lchown, mkdir, open } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { type InstanceSpec, infoLine } from "../driver.ts";
import { makeHeartbeat, type OrphanLimits } from "./heartbeat.ts";
import { titleOf } from "./instance-record.ts";
import { createFolder, type SystemUser } from "./system-users.ts";

interface LaunchOptions extends OrphanLimits {
  spec: InstanceSpec;
  /** Path of the Threadmill executable. */
  program: string;
  /** Path of langgraph.json in the build. */
  config_file: string;
  /** If undefined, the instance uses the embedded database. */
  database_url: string | undefined;
  log_file: string;
  system_env: Readonly<Record<string, string>>;
  /** If undefined, the instance runs as the user of the service. */
  user: SystemUser | undefined;
}

export interface Listener {
  server: Server;
  port: number;
}

/** Opens the socket that the instance inherits. No other process can take the port, and early connections wait instead of failing. */
export async function listenOnFreePort(): Promise<Listener> {
  const server = createServer((connection) => connection.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port };
}

/** Starts the agent server of a build in its own process group, so that the server keeps running after this process exits. */
export async function launch(options: LaunchOptions, { server, port }: Listener): Promise<ChildProcess> {
  const { spec, log_file, config_file, heartbeat_file, user } = options;
  await createHome(options);
  await mkdir(dirname(log_file), { recursive: true, mode: 0o700 });
  await makeHeartbeat(heartbeat_file);
  const log = await open(log_file, "a", 0o600);
  try {
    const [file, args] = withPrivateUmask([process.execPath, ...argumentsOf(options, port)]);
    const child = spawn(file, args, {
      cwd: dirname(config_file),
      env: environmentOf(options, port),
      ...user,
      detached: true,
      stdio: ["ignore", log.fd, log.fd, descriptorOf(server)],
    });
    if (child.pid === undefined) throw (await once(child, "error"))[0];
    child.unref();
    spec.log(infoLine(`Started process ${child.pid} on port ${port}.`));
    return child;
  } finally {
    await log.close();
  }
}

/** Creates the home folder. An existing path stays unchanged: the instance can write to the data folder and could have created a link. */
async function createHome({ data_dir, user }: LaunchOptions): Promise<void> {
  const home = join(data_dir, "home");
  await mkdir(data_dir, { recursive: true, mode: 0o700 });
  if ((await createFolder(home, 0o700)) && user) await lchown(home, user.uid, user.gid);
}

/** Makes new files readable only by the instance's user. `exec` replaces the shell, so the pid is the pid of the program. */
const withPrivateUmask = (command: string[]): [string, string[]] => [
  "/bin/sh",
  ["-c", 'umask 077 && exec "$0" "$@"', ...command],
];

function argumentsOf({ spec, program, config_file, data_dir, database_url }: LaunchOptions, port: number): string[] {
  const { memory_limit_mb, cpu_limit } = spec.resources;
  return [
    `--title=${titleOf(spec)}`,
    ...(memory_limit_mb === undefined ? [] : [`--max-old-space-size=${memory_limit_mb}`]),
    program,
    "serve",
    ...["--only", "agents"],
    ...["--config", config_file],
    ...["--data", data_dir],
    // The environment may contain a DATABASE_URL for the graphs, which the instance must not use for its own data.
    ...(database_url === undefined ? ["--share-data", "--database-url", ""] : []),
    ...(cpu_limit === undefined ? [] : hostsFor(Math.max(1, Math.floor(cpu_limit)))),
    ...["--port", String(port)],
    ...["--listen-fd", "3"],
  ];
}

const hostsFor = (cores: number): string[] => ["--hosts", String(cores), "--python-hosts", String(cores)];

/** Returns the deployment's variables, the instance's settings and system variables such as PATH, but no settings of the service. */
function environmentOf(options: LaunchOptions, port: number): Record<string, string> {
  const { spec, system_env, data_dir, database_url, heartbeat_file, orphan_ms } = options;
  const { memory_limit_mb } = spec.resources;
  return {
    ...system_env,
    HOME: join(data_dir, "home"),
    ...spec.env,
    PATH: system_env.PATH ?? "",
    API_KEYS: spec.api_key,
    PORT: String(port),
    THREADMILL_CONTROL_PLANE_FILE: heartbeat_file,
    THREADMILL_DEPLOY_ORPHAN_TIMEOUT: `${orphan_ms}ms`,
    ...(memory_limit_mb !== undefined && { THREADMILL_HOST_MEMORY: `${Math.max(64, memory_limit_mb)}MiB` }),
    ...(database_url !== undefined && { THREADMILL_DATABASE_URL: database_url }),
  };
}

/** Returns the file descriptor for `stdio`. Node.js has no public API for the file descriptor of a server. */
function descriptorOf(server: Server): number {
  const { _handle: handle } = server as unknown as { _handle?: { fd?: number } };
  if (handle?.fd === undefined || handle.fd < 0) throw new Error("The socket has no file descriptor on this system.");
  return handle.fd;
}
