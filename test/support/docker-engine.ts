import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import Docker from "dockerode";
import { create } from "tar";
import { type ImageName, nameOf } from "../../src/control-plane/drivers/image-name.ts";
import { PROGRAM } from "./program.ts";
import { until } from "./until.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** A Docker engine of its own, with an image in it that holds Node and this Threadmill, and nothing else. */
export interface TestEngine {
  socket: string;
  docker: Docker;
  /** Makes an image of that one, which serves these files as its project. Returns its id. */
  imageOf(name: string, files: Readonly<Record<string, string>>): Promise<string>;
  /** Runs a command in a container, as its own processes run. */
  execIn(container_id: string, command: readonly string[]): Promise<{ status: number; output: string }>;
  /** The process of the engine, in whose network namespace it is. */
  pid: number;
  /** Builds an image from a folder with a Dockerfile. */
  build(context: Docker.ImageBuildContext, options: Docker.ImageBuildOptions): Promise<void>;
  /** Sends an image to the registry that its name begins with. */
  push(image: string): Promise<void>;
  stop(): Promise<void>;
}

/** Why there is no engine to be had here; undefined: there is. With CI set nothing may be missing. */
export function engineMissing(): string | undefined {
  const missing = whatIsMissing();
  if (missing !== undefined && process.env.CI) throw new Error(`CI runs everything, but ${missing}`);
  if (missing !== undefined) console.warn(`\nContainers are not tested: ${missing}\n`);
  return missing;
}

function whatIsMissing(): string | undefined {
  if (process.getuid?.() !== 0) return "an engine of one's own can only be started by root.";
  const has = (command: string) => PATHS.some((folder) => existsSync(join(folder, command)));
  return has("dockerd") ? undefined : "dockerd is missing: apt-get install docker.io.";
}

const PATHS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
const BASE = "threadmill-base:test";
/** What a build of an image would say: how it is started, and where. */
const BASE_CONFIG = [
  'CMD ["/usr/bin/node", "/app/bin/threadmill.js", "serve", "--only", "agents"]',
  "WORKDIR /app/project",
  "ENV PATH=/usr/bin",
];

/** An image that is made of files of this machine. */
interface BaseImage {
  name: string;
  /** Files and folders by their path in the image. */
  contents: Readonly<Record<string, string>>;
  /** Instructions of a Dockerfile. */
  config: readonly string[];
}

/**
 * Starts an engine with a socket and a folder of its own, and leaves the machine's networks alone.
 *
 * @param bare Its image holds nothing: for tests that start no container.
 * @param base Another image instead of the one with this Threadmill.
 * @param apart It has a network namespace of its own, and with that the rules of a firewall. The test reaches no port there.
 */
export async function startEngine({
  bare = false,
  apart = false,
  base = { name: BASE, contents: bare ? {} : contents(), config: BASE_CONFIG },
}: {
  bare?: boolean;
  apart?: boolean;
  base?: BaseImage;
} = {}): Promise<TestEngine> {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-docker-"));
  const socket = join(folder, "engine.sock");
  const args = [
    ...(apart ? [] : ["--iptables=false", "--ip6tables=false", "--bridge=none"]),
    ...["--data-root", join(folder, "data"), "--exec-root", join(folder, "exec")],
    ...["--pidfile", join(folder, "pid"), "--host", `unix://${socket}`],
  ];
  const inNamespace = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];
  const [program = "", ...rest] = [...(apart ? inNamespace : []), "dockerd", ...args];
  const daemon = spawn(program, rest, {
    env: { ...process.env, PATH: PATHS.join(":"), HOME: folder },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = text(daemon.stderr);
  const ended = once(daemon, "exit");
  const docker = new Docker({ socketPath: socket });
  const isUp = () => docker.ping().then(Boolean, () => false);
  await Promise.race([
    until("the engine answers", isUp),
    ended.then(async () => Promise.reject(new Error(await said))),
  ]);
  await importBase(docker, folder, base).catch(async (error) => {
    daemon.kill("SIGTERM");
    await ended;
    throw error;
  });
  return {
    socket,
    docker,
    pid: daemon.pid as number,
    imageOf: (name, files) => imageOf(docker, name, files),
    execIn: (container_id, command) => execIn(docker, container_id, command),
    build: async (context, options) => {
      const output = await finished(docker, await docker.buildImage(context, options));
      const error = output.find((line) => line.error);
      if (error) throw new Error(output.map(({ stream, error: text }) => stream ?? text ?? "").join(""));
    },
    push: async (image) => {
      await finished(docker, await docker.getImage(image).push({ authconfig: {} }));
    },
    async stop() {
      for (const { Id } of await docker.listContainers({ all: true })) {
        await docker.getContainer(Id).remove({ force: true, v: true });
      }
      // The interface of a network outlives its engine.
      await docker.pruneNetworks();
      daemon.kill("SIGTERM");
      await ended;
      // Containers in the network of the machine leave it mounted.
      const network = join(folder, "exec/netns/default");
      if (existsSync(network)) spawnSync("umount", ["--lazy", network]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function importBase(docker: Docker, folder: string, { name, contents, config }: BaseImage): Promise<void> {
  const root = join(folder, "root");
  for (const [path, target] of Object.entries(contents)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(target, join(root, path));
  }
  for (const path of ["tmp", "app/project"]) {
    mkdirSync(join(root, path), { recursive: true });
    chmodSync(join(root, path), 0o1777);
  }
  const file = join(folder, "root.tar");
  // For these 15,000 files in a second; the package tar takes 13.
  await promisify(execFile)("tar", ["--create", "--dereference", "--file", file, "--directory", root, "."]);
  const [repo, tag] = name.split(":");
  await finished(docker, await docker.importImage(file, { repo, tag, changes: [...config] }));
  rmSync(file);
}

/** What is in the image, by path, and where it is on this machine. */
function contents(): Record<string, string> {
  const node = realpathSync(process.execPath);
  const libraries = execFileSync("ldd", [node], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g);
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
  };
  const needed = Object.entries(packages)
    .filter(([path, { dev, devOptional }]) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && !dev && !devOptional)
    .map(([path]) => path)
    .filter((path) => existsSync(join(ROOT, path)));
  return {
    "usr/bin/node": node,
    ...Object.fromEntries([...libraries].map(([, path = ""]) => [path.slice(1), realpathSync(path)])),
    ...Object.fromEntries(needed.map((path) => [`app/${path}`, join(ROOT, path)])),
    ...Object.fromEntries(["bin", "dist", "package.json"].map((path) => [`app/${path}`, join(PROGRAM, "../..", path)])),
  };
}

async function imageOf(docker: Docker, name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const { writeFiles, temporaryFolder } = await import("../control/deployed-project.ts");
  const file = join(temporaryFolder(), "project.tar");
  await create({ cwd: writeFiles(temporaryFolder(), files), file, portable: true }, ["."]);
  const container = await docker.createContainer({
    Image: BASE,
    NetworkingConfig: {},
    HostConfig: { NetworkMode: "none" },
  });
  await container.putArchive(file, { path: "/app/project" });
  const { repository: repo, version: tag } = nameOf(name) as ImageName;
  await container.commit({ repo, tag });
  await container.remove();
  return (await docker.getImage(name).inspect()).Id;
}

async function execIn(docker: Docker, container_id: string, command: readonly string[]) {
  const exec = await docker
    .getContainer(container_id)
    .exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true, Tty: true });
  const output = await text(await exec.start({ Tty: true }));
  const { ExitCode } = await exec.inspect();
  return { status: ExitCode ?? -1, output: output.trim() };
}

const finished = (docker: Docker, progress: NodeJS.ReadableStream): Promise<{ stream?: string; error?: string }[]> =>
  new Promise((resolve, reject) => {
    docker.modem.followProgress(progress, (error, output) => (error ? reject(error) : resolve(output)));
  });
