import { readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { isReserved } from "../../control-plane/secrets.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { CommandError } from "../experiments/command-error.ts";

/** What the folder of a project says of its deployment. */
export interface Project {
  folder: string;
  /** Of langgraph.json, relative to the folder. */
  config_path: string;
  name: string;
  /** Undefined: the project says nothing of secrets, so those of the deployment stay as they are. */
  secrets: { name: string; value: string }[] | undefined;
  /** Names that the service sets itself. */
  reserved: string[];
}

/**
 * @param env the environment of the command, for names that langgraph.json asks for
 * @throws CommandError when there is no langgraph.json, or what it names is not there
 */
export async function readDeployProject(
  folder: string,
  { config = "langgraph.json", name }: { config?: string; name?: string },
  env: Readonly<Record<string, string | undefined>>,
): Promise<Project> {
  const root = resolve(folder);
  const file = join(root, config);
  const text = await readFile(file, "utf8").catch(() => {
    throw new CommandError(
      `There is no ${config} in ${root}: name the folder of the project, or the file with --config.`,
    );
  });
  const project = parse(text, file);
  const values = await environmentOf(project.env, dirname(file), file, env);
  const entries = values && Object.entries(values).filter(([, value]) => value !== "");
  return {
    folder: root,
    config_path: config,
    name: name ?? nameOf(await manifestName(root), root),
    secrets: entries?.filter(([key]) => !isReserved(key)).map(([key, value]) => ({ name: key, value })),
    reserved: entries?.filter(([key]) => isReserved(key)).map(([key]) => key) ?? [],
  };
}

function parse(text: string, file: string): JsonObject {
  try {
    const project: unknown = JSON.parse(text);
    if (isObject(project) && isObject(project.graphs)) return project;
  } catch (error) {
    throw new CommandError(`${file} is not valid JSON (${(error as Error).message}).`);
  }
  throw new CommandError(`${file} must hold a JSON object with a field "graphs".`);
}

/** What `env` of langgraph.json says, and without that the file .env, if there is one. */
async function environmentOf(
  field: unknown,
  folder: string,
  file: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Record<string, string> | undefined> {
  if (field === undefined || field === null) {
    const text = await readFile(join(folder, ".env"), "utf8").catch(() => undefined);
    return text === undefined ? undefined : (parseEnv(text) as Record<string, string>);
  }
  if (typeof field === "string") {
    const text = await readFile(join(folder, field), "utf8").catch(() => {
      throw new CommandError(`${file}: the field "env" names ${field}, which cannot be read.`);
    });
    return parseEnv(text) as Record<string, string>;
  }
  if (Array.isArray(field)) {
    const missing = field.filter((name) => env[String(name)] === undefined);
    if (missing.length > 0)
      throw new CommandError(`${file}: the field "env" asks for ${missing.join(", ")}, which is not set here.`);
    return Object.fromEntries(field.map((name) => [String(name), env[String(name)] as string]));
  }
  if (isObject(field)) return Object.fromEntries(Object.entries(field).map(([name, value]) => [name, String(value)]));
  throw new CommandError(`${file}: the field "env" must be the path of a file, a map, or a list of names.`);
}

async function manifestName(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
  try {
    const { name } = JSON.parse(text) as { name?: unknown };
    return typeof name === "string" ? name : undefined;
  } catch {
    return undefined;
  }
}

/** A name as paths and hosts can have it. */
function nameOf(name: string | undefined, folder: string): string {
  const plain = (text: string) =>
    text
      .toLowerCase()
      .replace(/^@[^/]*\//, "")
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "");
  return plain(name ?? "") || plain(basename(folder)) || "agent";
}
