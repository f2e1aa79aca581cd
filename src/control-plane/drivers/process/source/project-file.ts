import { constants } from "node:fs";
import { open, realpath, writeFile } from "node:fs/promises";
import { basename, dirname, join, normalize, relative, sep } from "node:path";
import { DeployError } from "../../driver.ts";
import { makeEmptyFile, type SystemUser } from "../system-users.ts";

/** The langgraph.json of a source. */
export interface ProjectFile {
  /** Its folder, which the paths in it are relative to. */
  folder: string;
  /** Whether all modules that it names are there. */
  has_graphs: boolean;
  /** Names the modules that are not there, for people. */
  missing: string;
}

const MAX_BYTES = 1_000_000;

/**
 * Reads langgraph.json as far as a build has to know it. Its content is repeated nowhere: what a link leads to could be a file of
 * the service.
 *
 * @param config_path as the caller named it; undefined: langgraph.json at the root
 * @param user whose the source is
 * @throws DeployError when it is not in the source, or says nothing that could be served
 */
export async function readProjectFile(
  root: string,
  config_path: string | undefined,
  user: SystemUser | undefined,
): Promise<ProjectFile> {
  const path = configPathOf(config_path);
  const file = await inside(root, join(root, path));
  if (file === undefined) throw new DeployError(`The source has no ${path}: name the path of its langgraph.json.`);
  const project = parse(await readSmallFile(file, path), path);
  const graphs = Object.entries(isRecord(project.graphs) ? project.graphs : {});
  if (graphs.length === 0)
    throw new DeployError(
      `${path}: the field "graphs" must map graph names to paths, like {"agent": "./agent.ts:graph"}.`,
    );
  const folder = dirname(file);
  await makeEnvFile(project.env, folder, root, user);
  const missing: string[] = [];
  for (const [graph_id, value] of graphs) {
    const module = moduleOf(value, `${path}: graphs.${graph_id}`);
    if ((await inside(root, join(folder, module))) === undefined) missing.push(`graphs.${graph_id} names ${module}`);
  }
  return { folder, has_graphs: missing.length === 0, missing: `${path}: ${missing.join(", ")}, which is not there.` };
}

/** A path below the root, with the separators of this system. */
export function configPathOf(config_path: string | undefined): string {
  const path = normalize(config_path ?? "langgraph.json");
  if (path.startsWith("..") || path.startsWith(sep) || path.includes("\0") || basename(path) === "." || path === "")
    throw new DeployError("The path of langgraph.json must lie within the source.");
  return path;
}

/**
 * A file of a source, which its commands may have put anything in the place of: a pipe that nobody writes to, a link, a file of
 * gigabytes.
 *
 * @param name for people
 * @throws DeployError when it is no file, or too large; the system's error when it cannot be opened
 */
export async function readSmallFile(file: string, name: string): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new DeployError(`${name} is no file.`);
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
  if (isRecord(project)) return project;
  throw new DeployError(`${path} must hold a JSON object with a field "graphs".`);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function moduleOf(value: unknown, where: string): string {
  const path = isRecord(value) ? value.path : value;
  const [, module = ""] = (typeof path === "string" && /^(.+):[\w$]+$/.exec(path)) || [];
  if (module === "") throw new DeployError(`${where} must be like "./agent.ts:graph".`);
  if (module.endsWith(".py"))
    throw new DeployError(`${where} is written in Python. Graphs in JavaScript and TypeScript are served here.`);
  return module;
}

/**
 * A file of secrets is rarely packed along, and what it would hold arrives as secrets of the deployment: an empty one takes its
 * place.
 */
async function makeEnvFile(env: unknown, folder: string, root: string, user: SystemUser | undefined): Promise<void> {
  if (typeof env !== "string") return;
  const file = join(folder, env);
  // A link to another folder would have a file made there.
  const parent = dirname(file) === root ? root : await inside(root, dirname(file));
  if (!isBelow(root, file) || parent === undefined)
    throw new DeployError(`The field "env" of langgraph.json must name a file within the source.`);
  if (user) await makeEmptyFile(file, user);
  else await writeFile(file, "", { flag: "wx" }).catch(() => undefined);
}

/** The real path of a file that lies within a folder, also behind links; undefined when it is not there. */
async function inside(root: string, path: string): Promise<string | undefined> {
  const real = await realpath(path).catch(() => undefined);
  return real !== undefined && isBelow(await realpath(root), real) ? real : undefined;
}

const isBelow = (root: string, path: string): boolean => {
  const way = relative(root, path);
  return way !== "" && !way.startsWith("..") && !way.startsWith(sep);
};
