import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigError } from "../platform/errors.ts";
import type { JsonObject } from "../platform/lib/json/json.ts";

/** What langgraph.json says about the Python graphs of a project. */
export interface PythonProject {
  /** Minimum version of the interpreter, such as `3.12`; undefined for any that is supported. */
  version: string | undefined;
  /** Absolute folders from which modules are imported, besides the project folder and the packages of the environment. */
  sys_path: readonly string[];
}

const OLDEST_MINOR = 11;

/**
 * @param project the content of langgraph.json; `dependencies` are folders, which are imported from, and packages, which `deploy` installs
 * @throws ConfigError
 */
export function readPython(project: JsonObject, project_dir: string, file: string): PythonProject {
  const { python_version: version = null, dependencies = [] } = project;
  if (version !== null && !isSupported(version))
    throw new ConfigError(
      `${file}: python_version must be "3.${OLDEST_MINOR}" or a later version, but is ${JSON.stringify(version)}.`,
    );
  const folders = Array.isArray(dependencies) ? dependencies.filter(isFolder) : [];
  const sys_path = folders.flatMap((folder) => {
    const path = resolve(project_dir, folder);
    const source = join(path, "src");
    return existsSync(source) ? [path, source] : [path];
  });
  return { version: version ?? undefined, sys_path };
}

const isSupported = (version: unknown): version is string =>
  typeof version === "string" && Number(/^3\.(\d+)$/.exec(version)?.[1] ?? 0) >= OLDEST_MINOR;

/** Other dependencies are requirements of pip. */
const isFolder = (dependency: unknown): dependency is string =>
  typeof dependency === "string" && /^\.{0,2}(?:\/|$)/.test(dependency);
