import { createHash, randomBytes } from "node:crypto";
import { mkdir, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type BuildIo, type BuildSpec, DeployError, infoLine } from "../../driver.ts";
import { type Command, outputOf, runCommand } from "../command.ts";
import { chownTreeIfRoot, listNames, removeTree } from "../system-users.ts";
import { type Base, exists, isProgram, type ProjectFile, type PythonProject, readSmallFile } from "./project.ts";

/** Versions of Python that are looked for, newest first. */
const VERSIONS = ["3.14", "3.13", "3.12", "3.11"];
const LANGGRAPH = "langgraph>=1.2,<2";
/** File in a complete environment. Its time is that of the last build that used the environment. */
const COMPLETE = ".complete";
const LINK = ".venv";
/** File in the build with the name of its environment. */
const NAME_FILE = ".threadmill-python";
const VERSION_TIMEOUT_MS = 10_000;

/** The dependencies in pyproject.toml as JSON; `null` if a build backend computes them. */
const READ_PYPROJECT = `
import json, sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb")).get("project", {})
dynamic = "dependencies" in project.get("dynamic", [])
print(json.dumps(None if dynamic else project.get("dependencies", [])))
`;

/** How the packages of an environment are installed. */
interface Installation {
  /** Shown in the log, and part of the key of the environment. */
  command: string;
  args: readonly string[];
  /** Contents of the files that the command reads; undefined if they are unknown, so that the environment is not used again. */
  content: string | undefined;
}

/**
 * Creates the virtual environment of a project with Python modules and links it as `.venv` into the folder of langgraph.json. An environment
 * with the same packages is used again. It is created in its final folder, because scripts contain its path.
 *
 * @param root folder of the source
 * @param folder folder of the deployment's environments
 * @returns the environment for further commands of the build
 * @throws DeployError when no interpreter fits or the installation fails
 */
export async function installPython(
  root: string,
  { folder: project_folder, python }: ProjectFile & { python: PythonProject },
  folder: string,
  spec: BuildSpec,
  base: Base,
  io: BuildIo,
): Promise<Base> {
  const interpreter = await findInterpreter(python.version, base);
  const installation = await installationOf(project_folder, python, interpreter, spec, base, io);
  const key = keyOf(interpreter.version, installation, spec.env);
  const link = join(project_folder, LINK);
  const name_file = join(root, NAME_FILE);
  // Commands of the build can put links and pipes in place of these files, so they are changed with the rights of the source's owner.
  const change = (script: string, ...args: string[]) =>
    runCommand({ ...base, name: script, file: "sh", args: ["-c", script, "sh", ...args], cwd: root }, io);
  // An environment works only in the folder in which it was created.
  await change('rm -rf "$1"', link);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (base.user) await chownTreeIfRoot(folder, base.user);
  const known = await findComplete(folder, key);
  const environment = known ?? join(folder, `${key}.${randomBytes(8).toString("hex")}`);
  if (known) io.log(infoLine("Using an existing Python environment with the packages of this project."));
  else await create(environment, interpreter, installation, project_folder, base, io);
  // The new time keeps pruneEnvironments() from removing it until the build is complete.
  await change('rm -rf "$1" && touch "$1"', join(environment, COMPLETE));
  await change('rm -rf "$1" && ln -s "$2" "$1"', link, environment);
  await change('rm -rf "$1" && printf %s "$2" > "$1"', name_file, basename(environment));
  const env = { ...base.env, VIRTUAL_ENV: environment, PATH: `${join(environment, "bin")}:${base.env.PATH}` };
  return { ...base, env };
}

async function create(
  environment: string,
  interpreter: Interpreter,
  installation: Installation | undefined,
  cwd: string,
  base: Base,
  io: BuildIo,
): Promise<void> {
  const run = (command: Pick<Command, "name" | "file" | "args">) => {
    io.log(infoLine(`$ ${command.name}`));
    return runCommand({ ...base, ...command, cwd }, io);
  };
  await run({
    name: `python${interpreter.version} -m venv`,
    file: interpreter.path,
    args: ["-m", "venv", environment],
  });
  if (installation) {
    // Graph hosts may not write into the environment. Without bytecode, importing LangGraph takes 2.5 s instead of 0.9 s.
    const compile = { UV_COMPILE_BYTECODE: "1" };
    const env = { ...base.env, VIRTUAL_ENV: environment, UV_PROJECT_ENVIRONMENT: environment, ...compile };
    const [program = "", ...args] = installation.args;
    const file = program === "python" ? join(environment, "bin/python") : program;
    io.log(infoLine(`$ ${installation.command}`));
    await runCommand({ ...base, env, name: installation.command, file, args, cwd }, io);
  }
}

interface Interpreter {
  path: string;
  /** Such as `3.12`. */
  version: string;
}

async function findInterpreter(wanted: string | undefined, { env, user }: Base): Promise<Interpreter> {
  const names = wanted ? [`python${wanted}`, "python3"] : [...VERSIONS.map((version) => `python${version}`), "python3"];
  for (const name of names) {
    if (!(await isProgram(name, env.PATH ?? ""))) continue;
    const args = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"];
    const command = { name, file: name, args, cwd: "/", env, timeout_ms: VERSION_TIMEOUT_MS, user };
    const version = await outputOf(command).catch(() => "");
    if (wanted ? version === wanted : VERSIONS.includes(version)) return { path: name, version };
  }
  throw new DeployError(
    `The project is written in Python, but there is no Python ${wanted ?? `${VERSIONS.at(-1)} to ${VERSIONS[0]}`} interpreter on the PATH.`,
  );
}

/** Undefined if the install command of the deployment installs the packages. */
async function installationOf(
  folder: string,
  { dependencies, installer }: PythonProject,
  interpreter: Interpreter,
  { install_command }: BuildSpec,
  { env, user }: Base,
  io: BuildIo,
): Promise<Installation | undefined> {
  if (install_command !== undefined) return undefined;
  const hasUv = installer !== "pip" && (await isProgram("uv", env.PATH ?? ""));
  const textOf = async (name: string) => {
    const file = join(folder, name);
    return (await exists(file)) ? (await readSmallFile(await realpath(file), name)).toString("utf8") : undefined;
  };
  const lock = await textOf("uv.lock");
  if (lock !== undefined && hasUv) {
    const args = ["uv", "sync", "--frozen", "--no-dev", "--no-install-workspace"];
    return { command: args.join(" "), args, content: lock };
  }
  if (lock !== undefined)
    io.log({
      ...infoLine(
        `${installer === "pip" ? 'pip_installer is "pip"' : "uv is not installed"}, so pip installs the packages and ignores uv.lock.`,
      ),
      level: "WARNING",
    });
  const install = hasUv ? ["uv", "pip", "install"] : ["python", "-m", "pip", "install", "--disable-pip-version-check"];
  const installed = (args: readonly string[], content: string | undefined): Installation => {
    const command = [...install, ...args];
    return { command: command.join(" "), args: command, content };
  };
  const requirements = await textOf("requirements.txt");
  if (requirements !== undefined) {
    const more = withLangGraph(dependencies, requirements);
    return installed(["-r", "requirements.txt", ...more], requirements);
  }
  const pyproject = await textOf("pyproject.toml");
  if (pyproject === undefined) return installed(withLangGraph(dependencies, ""), "");
  const args = ["-c", READ_PYPROJECT, "pyproject.toml"];
  const reading = {
    name: "python",
    file: interpreter.path,
    args,
    cwd: folder,
    env,
    timeout_ms: VERSION_TIMEOUT_MS,
    user,
  };
  const text = await outputOf(reading).catch(() => {
    throw new DeployError("pyproject.toml could not be read: it must be valid TOML.");
  });
  const listed = JSON.parse(text) as string[] | null;
  if (listed === null) return installed([".", ...withLangGraph(dependencies, pyproject)], undefined);
  return installed(withLangGraph([...listed, ...dependencies], ""), "");
}

/** Adds LangGraph if neither the list nor the text of a file names it. */
const withLangGraph = (list: readonly string[], text: string): string[] => {
  const isNamed = [...list, ...text.split("\n")].some((line) => /^\s*["']?langgraph(?![\w-])/.test(line));
  return isNamed ? [...list] : [...list, LANGGRAPH];
};

/** Packages may be built for the interpreter and the machine, and come from the deployment's own index. */
function keyOf(version: string, installation: Installation | undefined, env: BuildSpec["env"]): string {
  const index = Object.entries(env)
    .filter(([name]) => /^(PIP|UV)_/.test(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const content = installation?.content ?? randomBytes(16).toString("hex");
  const inputs = [version, process.platform, process.arch, installation?.args, content, index];
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex").slice(0, 32);
}

async function findComplete(folder: string, key: string): Promise<string | undefined> {
  for (const name of await listNames(folder)) {
    if (name.startsWith(`${key}.`) && (await exists(join(folder, name, COMPLETE)))) return join(folder, name);
  }
  return undefined;
}

/** A build that has taken an environment is complete within this time. */
const MAX_BUILD_MS = 86_400_000;

/** Removes the environments that no build in `builds` uses. */
export async function pruneEnvironments(folder: string, builds: string): Promise<void> {
  const used = new Set<string>();
  for (const build of await listNames(builds))
    used.add(String(await readSmallFile(join(builds, build, NAME_FILE), NAME_FILE).catch(() => "")));
  for (const name of await listNames(folder)) {
    const path = join(folder, name);
    const { mtimeMs } = await stat(join(path, COMPLETE)).catch(() => stat(path));
    if (!used.has(name) && Date.now() - mtimeMs > MAX_BUILD_MS) await removeTree(path);
  }
}
