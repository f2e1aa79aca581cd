import { createHash } from "node:crypto";
import { chmod, mkdir, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BuildIo, type BuildSpec, type Built, DeployError, infoLine } from "../driver.ts";
import { type BuildWorkspace, createBuildWorkspace } from "./build-workspace.ts";
import { buildFolder, type Folders, knownHostsFile, npmCache, pythonEnvironments } from "./folders.ts";
import { checkOut, type GitRules } from "./source/git.ts";
import { buildSource, install, readProjectFile } from "./source/project.ts";
import { installPython } from "./source/python.ts";
import { toDeployError, type UnpackLimits, unpack } from "./source/unpack.ts";
import { chownTree, chownTreeIfRoot, type SystemUser, type SystemUsers } from "./system-users.ts";

export interface BuildSettings {
  folders: Folders;
  /** System variables such as PATH, without the variables of the service. */
  system_env: Readonly<Record<string, string>>;
  git: GitRules;
  /** Time limit for each command of a build. */
  build_timeout_ms: number;
  users: SystemUsers;
  unpack_limits?: UnpackLimits | undefined;
}

interface BuildJob {
  spec: BuildSpec;
  io: BuildIo;
  settings: BuildSettings;
  workspace: BuildWorkspace;
  /** If undefined, the build runs as the user of the service. */
  user: SystemUser | undefined;
}

/**
 * Builds a folder that can be served. The folder name is the hash of the build inputs. The folder is created atomically.
 *
 * @throws DeployError when the source cannot be built or the disk is full; the signal's reason when the signal is aborted
 */
export async function build(spec: BuildSpec, io: BuildIo, settings: BuildSettings): Promise<Built> {
  const { source } = spec;
  if (source.kind === "tarball" && (await isBuilt(spec, source.sha256, settings))) {
    io.log(infoLine("Using the existing build of this source."));
    return { artifact: artifactOf(spec, source.sha256) };
  }
  let workspace: BuildWorkspace | undefined;
  try {
    const user = await settings.users.of(spec.deployment_id);
    workspace = await createBuildWorkspace(settings.folders.workspaces, user);
    const job = { spec, io, settings, workspace, user };
    const content = await fetchSource(job);
    const built = { artifact: artifactOf(spec, content), ...(source.kind === "git" && { commit_sha: content }) };
    if (await isBuilt(spec, content, settings)) io.log(infoLine("Using the existing build of this commit."));
    else await buildInto(built.artifact, job);
    return built;
  } catch (error) {
    io.signal.throwIfAborted();
    throw toDeployError(error);
  } finally {
    await workspace?.remove();
  }
}

/** Puts the source into the workspace. Returns the SHA-256 of the tarball or the SHA of the commit. */
async function fetchSource({ spec, io, settings, workspace, user }: BuildJob): Promise<string> {
  const { source } = spec;
  if (source.kind === "git") {
    io.log(infoLine(`Fetching ${source.ref ?? "the newest commit"} of ${source.url}`));
    const env = { ...settings.system_env, HOME: workspace.home };
    const command = { env, timeout_ms: settings.build_timeout_ms, user, onStart: workspace.onStart };
    const known_hosts = knownHostsFile(settings.folders, spec.deployment_id);
    const ssh_files = { key: join(dirname(workspace.home), "ssh-key"), known_hosts };
    const sha = await checkOut(source, workspace.source, ssh_files, settings.git, command, io);
    io.log(infoLine(`Checked out commit ${sha}.`));
    return sha;
  }
  io.log(infoLine("Unpacking the source"));
  await unpack(source.file, workspace.source, io.signal, settings.unpack_limits);
  if (user) await chownTree(workspace.source, user);
  return source.sha256;
}

async function buildInto(artifact: string, { spec, io, settings, workspace, user }: BuildJob): Promise<void> {
  const { folders, system_env, build_timeout_ms } = settings;
  const npm_cache = npmCache(folders, spec.deployment_id);
  await mkdir(npm_cache, { recursive: true, mode: 0o700 });
  if (user) await chownTreeIfRoot(npm_cache, user);
  const base = {
    env: {
      ...system_env,
      HOME: workspace.home,
      CI: "1",
      npm_config_cache: npm_cache,
      npm_config_audit: "false",
      npm_config_fund: "false",
      npm_config_update_notifier: "false",
      ...spec.env,
      PATH: system_env.PATH ?? "",
    },
    timeout_ms: build_timeout_ms,
    user,
    onStart: workspace.onStart,
  };
  const { source } = workspace;
  const given = await readProjectFile(source, spec.config_path, user);
  const { python } = given;
  const environments = pythonEnvironments(folders, spec.deployment_id);
  const prepared = python ? await installPython(source, { ...given, python }, environments, spec, base, io) : base;
  await install(source, given, spec, prepared, io);
  await buildSource(source, await readProjectFile(source, spec.config_path, user), spec, prepared, io);
  const project = await readProjectFile(source, spec.config_path, user);
  if (!project.has_graphs) throw new DeployError(project.missing);
  io.signal.throwIfAborted();
  await moveIntoPlace(source, buildFolder(folders, spec.deployment_id, artifact));
  io.log(infoLine("Build complete."));
}

/** Renames a finished build. Keeps an existing folder, which a concurrent build of the same inputs has created. */
async function moveIntoPlace(source: string, folder: string): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  await chmod(dirname(folder), 0o711);
  await rename(source, folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

const isBuilt = (spec: BuildSpec, content: string, { folders }: BuildSettings): Promise<boolean> =>
  stat(buildFolder(folders, spec.deployment_id, artifactOf(spec, content))).then(
    () => true,
    () => false,
  );

/**
 * Returns the name of a build: the hash of its inputs. These include the secrets, because commands can use them; the deployment,
 * because its deletion removes its builds; and the Node.js version and CPU architecture, because of native modules.
 */
function artifactOf(spec: BuildSpec, content: string): string {
  const { deployment_id, config_path, install_command, build_command, env } = spec;
  const secrets = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  const { version, arch } = process;
  // JSON.stringify writes undefined array elements as null.
  const inputs = [deployment_id, content, config_path, install_command, build_command, secrets, version, arch];
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
}
