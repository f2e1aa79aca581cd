import { constants } from "node:fs";
import { access, open, realpath, writeFile } from "node:fs/promises";
import { basename, delimiter, dirname, join, normalize, relative, sep } from "node:path";
import { withoutUnset } from "../../../../platform/lib/json/json.ts";
import { type BuildIo, type BuildSpec, DeployError, infoLine } from "../../driver.ts";
import { type Command, runCommand } from "../command.ts";
import { createEmptyFile, type SystemUser } from "../system-users.ts";

/** What langgraph.json says about the environment of Python modules. */
export interface PythonProject {
  /** Such as `3.12`. */
  version: string | undefined;
  /** Requirements of pip. */
  dependencies: readonly string[];
  installer: "auto" | "pip" | "uv";
}

export interface ProjectFile {
  /** Folder of langgraph.json. Paths in langgraph.json are relative to this folder. */
  folder: string;
  /** Whether the modules of all graphs exist. */
  has_graphs: boolean;
  /** An error message that lists the missing modules. */
  missing: string;
  /** Undefined if no module is written in Python. */
  python: PythonProject | undefined;
}

const MAX_BYTES = 1_000_000;

/**
 * Reads langgraph.json for a build and creates its env file. Errors for invalid JSON do not quote it: a link could point to another file.
 *
 * @param config_path default: langgraph.json at the root
 * @param user the owner of the source
 * @throws DeployError when the file is missing or invalid
 */
export async function readProjectFile(
  root: string,
  config_path: string | undefined,
  user: SystemUser | undefined,
): Promise<ProjectFile> {
  const path = configPathOf(config_path);
  const file = await realPathWithin(root, join(root, path));
  if (file === undefined)
    throw new DeployError(
      `The source does not contain ${path}: set langgraph_config_path to the path of langgraph.json within the source.`,
    );
  const project = parse(await readSmallFile(file, path), path);
  const graphs = Object.entries(isRecord(project.graphs) ? project.graphs : {});
  if (graphs.length === 0)
    throw new DeployError(
      `${path}: the field "graphs" must map graph names to paths, for example {"agent": "./agent.ts:graph"}.`,
    );
  const folder = dirname(file);
  await createEnvFile(project.env, folder, root, user);
  const missing: string[] = [];
  for (const [graph_id, value] of graphs) {
    const module = moduleOf(value, `${path}: graphs.${graph_id}`);
    // A module with a dotted name may be in a package of the environment.
    if (DOTTED_NAME.test(module) && !JS_FILE.test(module)) continue;
    if ((await realPathWithin(root, join(folder, module))) === undefined)
      missing.push(`${module} (graphs.${graph_id})`);
  }
  const { auth, http, store } = project;
  const isPythonModule = (value: unknown, field: string) => !JS_FILE.test(moduleOf(value, `${path}: ${field}`));
  const isPython =
    graphs.some(([graph_id, value]) => isPythonModule(value, `graphs.${graph_id}`)) ||
    (isRecord(auth) && typeof auth.path === "string" && isPythonModule(auth.path, "auth.path")) ||
    // Encryption handlers are always in Python.
    isRecord(project.encryption) ||
    (isRecord(store) && isRecord(store.index) && /\.py:[^:]+$/.test(String(store.index.embed))) ||
    (isRecord(http) && typeof http.app === "string" && isPythonModule(http.app, "http.app"));
  return {
    folder,
    has_graphs: missing.length === 0,
    missing: `${path} refers to files that do not exist in the source: ${missing.join(", ")}.`,
    python: isPython ? pythonOf(project, path) : undefined,
  };
}

const JS_FILE = /\.[cm]?[jt]sx?$/;
const DOTTED_NAME = /^[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)*$/u;

function pythonOf(project: Record<string, unknown>, path: string): PythonProject {
  const { python_version: version, dependencies = [], pip_installer: installer = "auto" } = project;
  if (version !== undefined && !(typeof version === "string" && /^3\.\d+$/.test(version)))
    throw new DeployError(`${path}: python_version must be a version such as "3.12".`);
  if (installer !== "auto" && installer !== "pip" && installer !== "uv")
    throw new DeployError(`${path}: pip_installer must be "auto", "pip" or "uv".`);
  if (!Array.isArray(dependencies) || !dependencies.every((item) => typeof item === "string"))
    throw new DeployError(`${path}: the field "dependencies" must be a list of folders and requirements.`);
  // Folders are imported from, and not installed. A requirement that begins with "-" would be an option of pip.
  const requirements = dependencies.filter((item) => !/^(\.|\/|-)/.test(item));
  return { version, dependencies: requirements, installer };
}

/** @throws DeployError when the path is not a file path within the source */
export function configPathOf(config_path: string | undefined): string {
  const path = normalize(config_path ?? "langgraph.json");
  if (path.startsWith("..") || path.startsWith(sep) || path.includes("\0") || basename(path) === "." || path === "")
    throw new DeployError(
      `langgraph_config_path ${JSON.stringify(config_path ?? path)} is not a file path within the source: use a path relative to the root of the source, without "..".`,
    );
  return path;
}

/**
 * Reads a file of the source. Build commands may have replaced the file with a pipe, a link or a huge file.
 *
 * @param name name of the file in error messages
 * @throws DeployError when the path is not a file or the file is too large; a system error when the file cannot be opened
 */
export async function readSmallFile(file: string, name: string): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new DeployError(`${name} is not a file.`);
    if (stat.size > MAX_BYTES) throw new DeployError(`${name} is larger than ${MAX_BYTES} bytes.`);
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(MAX_BYTES), position: 0 });
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function parse(bytes: Buffer, path: string): Record<string, unknown> {
  let project: unknown;
  try {
    project = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw new DeployError(`${path} is not valid JSON.`);
  }
  if (isRecord(project)) return withoutUnset(project);
  throw new DeployError(`${path} must contain a JSON object with a field "graphs".`);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function moduleOf(value: unknown, field: string): string {
  const path = isRecord(value) ? value.path : value;
  const [, module = ""] = (typeof path === "string" && /^(.+):[\w$]+$/.exec(path)) || [];
  if (module === "")
    throw new DeployError(`${field} must have the form "<path>:<export>", for example "./agent.ts:graph".`);
  return module;
}

/** Creates an empty env file, because .env files are usually not uploaded. The deployment's secrets provide the variables instead. */
async function createEnvFile(env: unknown, folder: string, root: string, user: SystemUser | undefined): Promise<void> {
  if (typeof env !== "string") return;
  const file = join(folder, env);
  // If the parent folder were a link, the file would be created outside of the source.
  const parent = dirname(file) === root ? root : await realPathWithin(root, dirname(file));
  if (!isBelow(root, file) || parent === undefined)
    throw new DeployError(
      `The path in the field "env" of langgraph.json must be within the source, in an existing folder.`,
    );
  if (user) await createEmptyFile(file, user);
  else await writeFile(file, "", { flag: "wx" }).catch(() => undefined);
}

/** Returns the real path of a file; undefined if the file does not exist or is outside of the folder. */
async function realPathWithin(root: string, path: string): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined);
  return real !== undefined && isBelow(await realpath(root), real) ? real : undefined;
}

const isBelow = (root: string, path: string): boolean => {
  const relative_path = relative(root, path);
  return relative_path !== "" && !relative_path.startsWith("..") && !relative_path.startsWith(sep);
};

export type Base = Pick<Command, "env" | "timeout_ms" | "user" | "onStart">;

const INSTALLERS = [
  { lock: "package-lock.json", program: "npm", args: "ci" },
  { lock: "npm-shrinkwrap.json", program: "npm", args: "ci" },
  { lock: "pnpm-lock.yaml", program: "pnpm", args: "install --frozen-lockfile" },
  { lock: "yarn.lock", program: "yarn", args: "install --frozen-lockfile" },
];

/**
 * Installs the dependencies with the deployment's install command, or else with the package manager of the lock file or npm. A folder
 * with `node_modules` is skipped unless there is an install command.
 *
 * @throws DeployError when the command fails
 */
export async function install(
  root: string,
  project: ProjectFile,
  spec: BuildSpec,
  base: Base,
  io: BuildIo,
): Promise<void> {
  if (spec.install_command !== undefined) return runShell(spec.install_command, root, base, io);
  for (const folder of new Set([root, project.folder])) {
    const manifest = await readManifest(folder);
    if (!manifest || (await exists(join(folder, "node_modules")))) continue;
    const command = await installerOf(folder, manifest, base, io);
    if (command !== undefined) return runShell(command, folder, base, io);
  }
}

async function installerOf(
  folder: string,
  manifest: Manifest,
  { env }: Base,
  io: BuildIo,
): Promise<string | undefined> {
  for (const { lock, program, args } of INSTALLERS) {
    if (!(await exists(join(folder, lock)))) continue;
    if (await isProgram(program, env.PATH ?? "")) return `${program} ${args}`;
    const line = infoLine(`${program} is not installed, so ${lock} is ignored.`);
    io.log({ ...line, level: "WARNING" });
  }
  const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = manifest;
  const isNeeded = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies }).length > 0;
  return isNeeded ? "npm install --no-package-lock" : undefined;
}

/**
 * Builds the source with the deployment's build command, or with the script `build` if modules of langgraph.json are missing.
 *
 * @throws DeployError when the command fails
 */
export async function buildSource(root: string, project: ProjectFile, spec: BuildSpec, base: Base, io: BuildIo) {
  if (spec.build_command !== undefined) return runShell(spec.build_command, project.folder, base, io);
  if (project.has_graphs) return;
  for (const folder of new Set([project.folder, root])) {
    if ((await readManifest(folder))?.scripts?.build !== undefined) return runShell("npm run build", folder, base, io);
  }
}

function runShell(command: string, cwd: string, base: Base, io: BuildIo): Promise<void> {
  io.log(infoLine(`$ ${command}`));
  return runCommand({ ...base, name: command, file: "/bin/sh", args: ["-c", `umask 077\n${command}`], cwd }, io);
}

interface Manifest {
  dependencies?: object;
  devDependencies?: object;
  optionalDependencies?: object;
  scripts?: { build?: string };
}

async function readManifest(folder: string): Promise<Manifest | undefined> {
  const file = join(folder, "package.json");
  if (!(await exists(file))) return undefined;
  const bytes = await readSmallFile(file, "package.json");
  try {
    return JSON.parse(bytes.toString("utf8")) as Manifest;
  } catch {
    throw new DeployError("package.json is not valid JSON.");
  }
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

export async function isProgram(name: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) if (await exists(join(folder, name))) return true;
  return false;
}
