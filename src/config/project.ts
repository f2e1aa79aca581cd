import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { ConfigError } from "../platform/errors.ts";
import { isObject, type JsonObject } from "../platform/lib/json/json.ts";
import type { Env } from "./values.ts";

/** One entry of `graphs` in langgraph.json. */
export interface GraphSpec {
  graph_id: string;
  /** Absolute path of the module. */
  file: string;
  /** Name of its export. */
  export_name: string;
  description: string | null;
}

export function readProject(file: string): JsonObject {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    throw new ConfigError(`${file} does not exist or cannot be read: create it, or name another file with --config.`);
  }
  try {
    const project: unknown = JSON.parse(text);
    if (isObject(project)) return project;
  } catch (error) {
    throw new ConfigError(`${file} is not valid JSON (${(error as Error).message}): correct it.`);
  }
  throw new ConfigError(`${file} must hold a JSON object with a field "graphs".`);
}

export function readGraphs(field: unknown, project_dir: string, file: string): GraphSpec[] {
  if (!isObject(field) || Object.keys(field).length === 0) {
    throw new ConfigError(
      `${file}: the field "graphs" must map graph names to paths, for example {"agent": "./agent.ts:graph"}.`,
    );
  }
  return Object.entries(field).map(([graph_id, value]) => {
    const path = isObject(value) ? value.path : value;
    const parts = typeof path === "string" ? /^(.+):([\w$]+)$/.exec(path) : null;
    if (!parts) {
      throw new ConfigError(
        `${file}: graphs.${graph_id} must be "./file.ts:exportName" (or {"path": "./file.ts:exportName"}), but is ${JSON.stringify(value)}.`,
      );
    }
    const [, module = "", export_name = ""] = parts;
    const description = isObject(value) && typeof value.description === "string" ? value.description : null;
    return { graph_id, file: resolve(project_dir, module), export_name, description };
  });
}

/** `env` of langgraph.json: the path of a .env file, a map, or a list of names that must be set; these are given as they are. */
export function readEnvField(field: unknown, project_dir: string, file: string, env: Env): Record<string, string> {
  if (field === undefined || field === null) return {};
  if (typeof field === "string") {
    try {
      return parseEnv(readFileSync(resolve(project_dir, field), "utf8")) as Record<string, string>;
    } catch {
      throw new ConfigError(
        `${file}: the field "env" names ${field}, which cannot be read: create that file or remove the field.`,
      );
    }
  }
  if (Array.isArray(field)) {
    const missing = field.filter((name) => env[String(name)] === undefined);
    if (missing.length === 0)
      return Object.fromEntries(field.map((name) => [String(name), env[String(name)] as string]));
    throw new ConfigError(
      `${file}: the field "env" asks for ${missing.join(", ")}, which is not set: set it in the environment.`,
    );
  }
  if (isObject(field)) return Object.fromEntries(Object.entries(field).map(([name, value]) => [name, String(value)]));
  throw new ConfigError(`${file}: the field "env" must be the path of a file, a map, or a list of names.`);
}

export function readPrefix(value: unknown, file: string): string {
  if (value === undefined || value === null || value === "" || value === "/") return "";
  if (typeof value === "string" && /^\/[\w./-]*[\w.-]$/.test(value)) return value;
  throw new ConfigError(
    `${file}: http.mount_prefix (or MOUNT_PREFIX) must be a path like "/agents", but is ${JSON.stringify(value)}.`,
  );
}
