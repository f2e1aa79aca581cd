import { createHash } from "node:crypto";
import { chmod, mkdir, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BuildIo, type BuildOrder, DeployError } from "../driver.ts";
import { buildFolder, type Folders, knownHostsFile, npmCache } from "./folders.ts";
import { beginMaking, type Making } from "./making.ts";
import { checkOut, type GitRules } from "./source/git.ts";
import { buildSource, install } from "./source/install.ts";
import { readProjectFile } from "./source/project-file.ts";
import { explain, type UnpackLimits, unpack } from "./source/unpack.ts";
import { give, giveOnce, type SystemUser, type SystemUsers } from "./system-users.ts";

export interface BuildSettings {
  folders: Folders;
  /** PATH and the like: what a program needs of the system, and nothing of the service. */
  system_env: Readonly<Record<string, string>>;
  git: GitRules;
  /** For each command of a build. */
  build_timeout_ms: number;
  users: SystemUsers;
  unpack_limits?: UnpackLimits;
}

export interface Built {
  artifact: string;
  /** Of a git source: which commit it was. */
  commit_sha?: string;
}

/**
 * Makes a folder that can be served of source. It is called by the hash of what it was made of, and appears whole or not at all.
 *
 * @throws DeployError when the source is not fit to be served, or the disk is full; the reason of the signal when that was aborted
 */
export async function build(order: BuildOrder, io: BuildIo, settings: BuildSettings): Promise<Built> {
  const tell = (message: string) => io.log({ at: Date.now(), level: "INFO", message });
  const { source } = order;
  if (source.kind === "tarball" && (await isBuilt(order, source.sha256, settings))) {
    tell("This source has been built before.");
    return { artifact: artifactOf(order, source.sha256) };
  }
  let making: Making | undefined;
  try {
    const user = await settings.users.of(order.deployment_id);
    making = await beginMaking(settings.folders.making, user);
    const content = await fetchSource(order, making, user, io, settings);
    const built = { artifact: artifactOf(order, content), ...(source.kind === "git" && { commit_sha: content }) };
    if (await isBuilt(order, content, settings)) tell("This commit has been built before.");
    else await make(order, making, user, built.artifact, io, settings);
    return built;
  } catch (error) {
    io.signal.throwIfAborted();
    throw explain(error);
  } finally {
    await making?.drop();
  }
}

/** Puts the source into the making, and returns what its content is called. */
async function fetchSource(
  order: BuildOrder,
  making: Making,
  user: SystemUser | undefined,
  io: BuildIo,
  settings: BuildSettings,
): Promise<string> {
  const { source } = order;
  const tell = (message: string) => io.log({ at: Date.now(), level: "INFO", message });
  if (source.kind === "git") {
    tell(`Fetching ${source.ref ?? "the newest commit"} of ${source.url}`);
    const base = { env: { ...settings.system_env, HOME: making.home }, timeout_ms: settings.build_timeout_ms, user };
    const known_hosts = knownHostsFile(settings.folders, order.deployment_id);
    const ssh_files = { key: join(dirname(making.home), "ssh-key"), known_hosts };
    const command = { ...base, onStart: making.onStart };
    const sha = await checkOut(source, making.source, ssh_files, settings.git, command, io);
    tell(`This is commit ${sha}.`);
    return sha;
  }
  tell("Unpacking the source");
  await unpack(source.file, making.source, io.signal, settings.unpack_limits);
  if (user) await give(making.source, user);
  return source.sha256;
}

async function make(
  order: BuildOrder,
  making: Making,
  user: SystemUser | undefined,
  artifact: string,
  io: BuildIo,
  settings: BuildSettings,
) {
  const { folders, system_env, build_timeout_ms } = settings;
  const npm_cache = npmCache(folders, order.deployment_id);
  await mkdir(npm_cache, { recursive: true, mode: 0o700 });
  if (user) await giveOnce(npm_cache, user);
  const base = {
    env: {
      ...system_env,
      HOME: making.home,
      CI: "1",
      npm_config_cache: npm_cache,
      npm_config_audit: "false",
      npm_config_fund: "false",
      npm_config_update_notifier: "false",
      ...order.env,
      PATH: system_env.PATH ?? "",
    },
    timeout_ms: build_timeout_ms,
    user,
    onStart: making.onStart,
  };
  await install(making.source, await readProjectFile(making.source, order.config_path, user), order, base, io);
  await buildSource(making.source, await readProjectFile(making.source, order.config_path, user), order, base, io);
  const project = await readProjectFile(making.source, order.config_path, user);
  if (!project.has_graphs) throw new DeployError(project.missing);
  io.signal.throwIfAborted();
  await keep(making.source, buildFolder(folders, order.deployment_id, artifact));
  io.log({ at: Date.now(), level: "INFO", message: "The build is ready." });
}

/** Another build of the same content may have been faster: its folder is as good. */
async function keep(made: string, folder: string): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  await chmod(dirname(folder), 0o711);
  await rename(made, folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

const isBuilt = (order: BuildOrder, content: string, { folders }: BuildSettings): Promise<boolean> =>
  stat(buildFolder(folders, order.deployment_id, artifactOf(order, content))).then(
    () => true,
    () => false,
  );

/**
 * The name of a build: the hash of all that it depends on. Secrets are part of it, as commands may have used them; the
 * deployment, so that its folders can go with it; and Node's version, for modules that are compiled.
 */
function artifactOf(order: BuildOrder, content: string): string {
  const { deployment_id, config_path, install_command, build_command, env } = order;
  const secrets = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = [
    deployment_id,
    content,
    config_path,
    install_command,
    build_command,
    secrets,
    process.version,
    process.arch,
  ];
  return createHash("sha256")
    .update(JSON.stringify(parts.map((part) => part ?? null)))
    .digest("hex");
}
