import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { promisify } from "node:util";

/** A Python that can execute the graphs of a project. */
export interface Interpreter {
  path: string;
  /** Such as `3.12.1`. */
  version: string;
  /** Set if it is older than {@link PythonSearch.version}. */
  warning?: string;
}

export interface PythonSearch {
  project_dir: string;
  /** THREADMILL_PYTHON; undefined to search. */
  path: string | undefined;
  /** `python_version` of langgraph.json. */
  version: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
}

/** No interpreter fits. The message says which were found, and how to create one. */
export class PythonError extends Error {}

interface Candidate {
  path: string;
  /** What the messages call it. */
  label: string;
  /** The project or the user names it, so if it does not fit, that is an error. */
  isNamed: boolean;
}

/** What an interpreter answers. */
export interface Probe {
  version: string;
  packages: Record<string, string | null>;
}

/** Below 3.11, tasks of asyncio have no context of their own, so `interrupt()` does not work in asynchronous nodes. */
const OLDEST = [3, 11] as const;
/** Version 1.2 added RunControl, which stops a run between two steps. */
const OLDEST_LANGGRAPH = [1, 2] as const;
const PROBE_TIMEOUT_MS = 10_000;

/** Reads versions without importing the packages. */
const PROBE = `
import importlib.metadata as m, json, sys
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
names = ("langgraph", "langgraph-checkpoint")
print(json.dumps({"version": sys.version.split()[0], "packages": {n: version(n) for n in names}}))
`;

const isAtLeast = (version: string, [major, minor]: readonly [number, number]): boolean => {
  const [first = 0, second = 0] = version.split(".").map(Number);
  return first > major || (first === major && second >= minor);
};

/**
 * Finds the interpreter of a project: the named one, the virtual environment of the project, the active environment, or the first one on
 * the PATH that fits.
 *
 * @param known what fitting interpreters have answered, so that they are not asked again: on a busy machine the answer may come too late
 * @throws PythonError
 */
export async function findPython(search: PythonSearch, known = new Map<string, Probe>()): Promise<Interpreter> {
  const { project_dir, version } = search;
  const wanted = version ? ([3, Number(version.split(".")[1])] as const) : OLDEST;
  const seen: string[] = [];
  for (const candidate of candidates(search)) {
    const key = keyOf(candidate.path);
    const probe = known.get(key) ?? (await probeOf(candidate.path, search));
    if (!probe) {
      if (search.path !== undefined)
        throw new PythonError(
          `The Python interpreter ${search.path} (--python or THREADMILL_PYTHON) cannot be executed.`,
        );
      seen.push(candidate.label);
      continue;
    }
    if (!isAtLeast(probe.version, OLDEST)) {
      if (candidate.isNamed)
        throw new PythonError(`${candidate.label} is Python ${probe.version}; 3.11 or later is required.`);
      seen.push(`${candidate.label} = ${probe.version}`);
      continue;
    }
    if (!candidate.isNamed && !isAtLeast(probe.version, wanted)) {
      seen.push(`${candidate.label} = ${probe.version}`);
      continue;
    }
    requireLangGraph(candidate, probe, project_dir);
    known.set(key, probe);
    const found = { path: candidate.path, version: probe.version };
    if (isAtLeast(probe.version, wanted)) return found;
    const warning = `${candidate.label} is Python ${probe.version}, which is older than python_version (${version}) in langgraph.json. Create the environment with Python ${version}, or change python_version.`;
    return { ...found, warning };
  }
  const looked_at = seen.length > 0 ? ` (looked at: ${seen.join(", ")})` : "";
  throw new PythonError(
    `no Python ${version ?? "3.11"} or later was found${looked_at}. Create an environment with "uv venv --python ${version ?? "3.12"} && uv pip install langgraph" ` +
      `or "python${version ?? "3.12"} -m venv .venv && .venv/bin/pip install langgraph".`,
  );
}

const NAMED = "THREADMILL_PYTHON";

function requireLangGraph({ path, label }: Candidate, { packages }: Probe, project_dir: string): void {
  const { langgraph } = packages;
  // uv installs into the environment of the project, not into another interpreter.
  const usesUv = label !== NAMED && existsSync(join(project_dir, "uv.lock"));
  if (!langgraph) {
    const command = usesUv ? "uv add langgraph" : `${path} -m pip install "langgraph>=1.2"`;
    throw new PythonError(`langgraph is not installed in ${label}; run: ${command}`);
  }
  if (!isAtLeast(langgraph, OLDEST_LANGGRAPH)) {
    const command = usesUv ? 'uv add "langgraph>=1.2"' : `${path} -m pip install -U "langgraph>=1.2"`;
    throw new PythonError(
      `langgraph ${langgraph} is installed in ${label}, but 1.2 or later is required; run: ${command}`,
    );
  }
}

function candidates({ project_dir, path, version, env }: PythonSearch): Candidate[] {
  if (path !== undefined) return [{ path, label: NAMED, isNamed: true }];
  const found: Candidate[] = [];
  for (const folder of foldersUp(project_dir))
    for (const name of [".venv", "venv"]) {
      const python = join(folder, name, "bin/python");
      if (existsSync(python))
        found.push({ path: python, label: relative(project_dir, join(folder, name)) || name, isNamed: true });
    }
  for (const name of ["VIRTUAL_ENV", "CONDA_PREFIX"]) {
    const python = env[name] && join(env[name], "bin/python");
    if (python && existsSync(python)) found.push({ path: python, label: name, isNamed: true });
  }
  for (const name of [...(version ? [`python${version}`] : []), "python3", "python"]) {
    const python = onPath(name, env);
    if (python) found.push({ path: python, label: name, isNamed: false });
  }
  return found;
}

/** The folder and its parents, up to the root of the repository. */
function foldersUp(folder: string): string[] {
  if (existsSync(join(folder, ".git")) || dirname(folder) === folder) return [folder];
  return [folder, ...foldersUp(dirname(folder))];
}

const onPath = (name: string, env: PythonSearch["env"]): string | undefined =>
  (env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));

const keyOf = (path: string): string => `${path} ${statSync(path, { throwIfNoEntry: false })?.mtimeMs}`;

/** Undefined if the file cannot be executed or is no Python. */
async function probeOf(path: string, { project_dir, env }: PythonSearch): Promise<Probe | undefined> {
  try {
    const options = { cwd: project_dir, env: env as NodeJS.ProcessEnv, timeout: PROBE_TIMEOUT_MS };
    const { stdout } = await promisify(execFile)(path, ["-I", "-c", PROBE], options);
    return JSON.parse(stdout) as Probe;
  } catch {
    return undefined;
  }
}
