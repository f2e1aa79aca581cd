import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { type BuildIo, type BuildOrder, DeployError } from "../../driver.ts";
import { type Command, runCommand } from "../command.ts";
import { type ProjectFile, readSmallFile } from "./project-file.ts";

type Base = Pick<Command, "env" | "timeout_ms" | "user" | "onStart">;

/** Which lock file belongs to whose installation of exactly what it says. */
const INSTALLERS = [
  { lock: "package-lock.json", program: "npm", args: "ci" },
  { lock: "npm-shrinkwrap.json", program: "npm", args: "ci" },
  { lock: "pnpm-lock.yaml", program: "pnpm", args: "install --frozen-lockfile" },
  { lock: "yarn.lock", program: "yarn", args: "install --frozen-lockfile" },
];

/**
 * Installs what the source depends on: with the command that was given, or as its lock file suggests. A source that brings its
 * `node_modules` along needs nothing.
 *
 * @throws DeployError when the command fails
 */
export async function install(
  root: string,
  project: ProjectFile,
  order: BuildOrder,
  base: Base,
  io: BuildIo,
): Promise<void> {
  if (order.install_command !== undefined) return runShell(order.install_command, root, base, io);
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
    const message = `There is ${lock}, but no ${program} here: npm installs without it.`;
    io.log({ at: Date.now(), level: "WARNING", message });
  }
  const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = manifest;
  const isNeeded = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies }).length > 0;
  return isNeeded ? "npm install --no-package-lock" : undefined;
}

/**
 * Builds the source: with the command that was given, or with its script `build` when modules that langgraph.json names are not
 * there yet.
 *
 * @throws DeployError when the command fails
 */
export async function buildSource(root: string, project: ProjectFile, order: BuildOrder, base: Base, io: BuildIo) {
  if (order.build_command !== undefined) return runShell(order.build_command, project.folder, base, io);
  if (project.has_graphs) return;
  for (const folder of new Set([project.folder, root])) {
    if ((await readManifest(folder))?.scripts?.build !== undefined) return runShell("npm run build", folder, base, io);
  }
}

function runShell(command: string, cwd: string, base: Base, io: BuildIo): Promise<void> {
  io.log({ at: Date.now(), level: "INFO", message: `$ ${command}` });
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

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function isProgram(name: string, path: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) if (await exists(join(folder, name))) return true;
  return false;
}
