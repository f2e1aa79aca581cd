import type { Dirent } from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseEnv } from "node:util";
import { create } from "tar";
import { type IgnoreRules, NEVER_DEPLOYED, readIgnoreRules } from "../../control-plane/contract/ignore-rules.ts";
import { isReserved } from "../../control-plane/deployments/secrets.ts";
import { isObject, type JsonObject, jsonOrUndefined, withoutUnset } from "../../platform/lib/json/json.ts";
import { CommandError } from "../command.ts";

export interface Project {
  folder: string;
  /** Path of langgraph.json, relative to the folder. */
  config_path: string;
  name: string;
  /** Path of the file in the field `env`, relative to the folder. Its variables are sent as secrets, so it is not part of the source. */
  env_file: string | undefined;
  /** Undefined if the project defines no secrets with a value; the existing secrets of the deployment are then kept. */
  secrets: { name: string; value: string }[] | undefined;
  /** Names that are not sent, because the service sets them. */
  reserved: string[];
}

/**
 * @param env values of the variables that langgraph.json lists
 * @throws CommandError when langgraph.json is missing or invalid, or when a file or a variable that it names is missing
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
      `${root} does not contain ${config}: pass the project folder, or set the path to the file with --config.`,
    );
  });
  const project = parseProject(text, file);
  const values = await readEnvironment(project.env, dirname(file), file, env);
  const entries = Object.entries(values ?? {}).filter(([, value]) => value !== "");
  const secrets = entries.filter(([key]) => !isReserved(key)).map(([key, value]) => ({ name: key, value }));
  return {
    folder: root,
    config_path: config,
    name: name ?? deploymentName(await packageName(root), root),
    env_file:
      typeof project.env === "string"
        ? relative(root, join(dirname(file), project.env)).replaceAll("\\", "/")
        : undefined,
    secrets: secrets.length > 0 ? secrets : undefined,
    reserved: entries.filter(([key]) => isReserved(key)).map(([key]) => key),
  };
}

function parseProject(text: string, file: string): JsonObject {
  try {
    const project: unknown = JSON.parse(text);
    if (isObject(project) && isObject(project.graphs)) return withoutUnset(project);
  } catch (error) {
    throw new CommandError(`${file} is not valid JSON (${(error as Error).message}): correct the file.`);
  }
  throw new CommandError(`${file} must be a JSON object whose field "graphs" is an object.`);
}

/** Returns the variables that `env` of langgraph.json defines. Without this field, returns those of the file .env if it exists. */
async function readEnvironment(
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
      throw new CommandError(
        `${file}: the field "env" refers to the file ${field}, which cannot be read. Create the file, or remove the field.`,
      );
    });
    return parseEnv(text) as Record<string, string>;
  }
  if (Array.isArray(field)) {
    const missing = field.filter((name) => env[String(name)] === undefined);
    if (missing.length > 0)
      throw new CommandError(
        `${file}: the environment does not contain every variable in the field "env". Missing: ${missing.join(", ")}.`,
      );
    return Object.fromEntries(field.map((name) => [String(name), env[String(name)] as string]));
  }
  if (isObject(field)) return Object.fromEntries(Object.entries(field).map(([name, value]) => [name, String(value)]));
  throw new CommandError(`${file}: the field "env" must be a file path, an object, or a list of names.`);
}

async function packageName(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
  const content = jsonOrUndefined(text);
  return isObject(content) && typeof content.name === "string" ? content.name : undefined;
}

/** Derives a name that is valid in paths and host names from the package name or the folder name. */
function deploymentName(name: string | undefined, folder: string): string {
  const slug = (text: string) =>
    text
      .toLowerCase()
      .replace(/^@[^/]*\//, "")
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "");
  return slug(name ?? "") || slug(basename(folder)) || "agent";
}

interface SourceFiles {
  /** Relative to the folder, with `/` as the separator. */
  paths: string[];
  /** Uncompressed. */
  bytes: number;
  /** Symbolic links, which are not archived. */
  links: string[];
}

export interface SourceArchive {
  file: string;
  bytes: number;
  remove(): Promise<void>;
}

/** Limits of the service. They are also checked here, because the service checks them only after the upload. */
const MAX_FILES = 50_000;
const MAX_SOURCE_BYTES = 2 ** 30;
const MAX_ARCHIVE_BYTES = 200 * 2 ** 20;

interface Rules {
  rules: IgnoreRules;
  /** The folder to which the rules apply, with a trailing `/`; empty for the root. */
  base: string;
}

/** @throws CommandError when the tarball exceeds the limit of the service */
export async function createArchive(folder: string, paths: readonly string[]): Promise<SourceArchive> {
  const temporary = await mkdtemp(join(tmpdir(), "threadmill-source-"));
  const remove = () => rm(temporary, { recursive: true, force: true });
  const file = join(temporary, "source.tar.gz");
  try {
    // The prefix is needed because tar treats a name that begins with @ as an archive and copies its entries.
    const names = paths.map((path) => `./${path}`);
    await create({ gzip: true, portable: true, noDirRecurse: true, cwd: folder, file }, names);
    const { size: bytes } = await stat(file);
    if (bytes > MAX_ARCHIVE_BYTES)
      throw new CommandError(
        "The compressed source exceeds 200 MB: use a .dockerignore file to exclude unneeded files.",
      );
    return { file, bytes, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Lists the files of the folder that are not excluded.
 *
 * @throws CommandError when the number or the size of the files exceeds the limit of the service
 */
export async function listSource(folder: string): Promise<SourceFiles> {
  const found: SourceFiles = { paths: [], bytes: 0, links: [] };
  await listFolder(folder, "", await readRules(folder, "", ".dockerignore"), found);
  return found;
}

async function listFolder(root: string, base: string, inherited: Rules[], found: SourceFiles): Promise<void> {
  const rules = [...inherited, ...(await readRules(root, base, ".gitignore"))];
  const entries = await readdir(join(root, base), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = `${base}${entry.name}`;
    if (NEVER_DEPLOYED.test(entry.name) || isExcluded(path, entry, rules)) continue;
    if (entry.isSymbolicLink()) found.links.push(path);
    else if (entry.isDirectory()) await listFolder(root, `${path}/`, rules, found);
    else if (entry.isFile()) await addFile(root, path, found);
  }
}

async function addFile(root: string, path: string, found: SourceFiles): Promise<void> {
  found.paths.push(path);
  found.bytes += (await stat(join(root, path))).size;
  if (found.paths.length > MAX_FILES || found.bytes > MAX_SOURCE_BYTES)
    throw new CommandError(
      `${root} contains more than ${MAX_FILES} files or more than 1 GB of data: use a .dockerignore file to exclude unneeded files.`,
    );
}

/** The last matching rule decides. The rules of a folder come after those of its parent folders. */
function isExcluded(path: string, entry: Dirent, rules: readonly Rules[]): boolean {
  let isOut = false;
  for (const { rules: own, base } of rules) isOut = own.excludes(path.slice(base.length), entry.isDirectory()) ?? isOut;
  return isOut;
}

async function readRules(root: string, base: string, name: ".gitignore" | ".dockerignore"): Promise<Rules[]> {
  const text = await readFile(join(root, base, name), "utf8").catch(() => undefined);
  return text === undefined ? [] : [{ rules: readIgnoreRules(text, name === ".gitignore" ? "git" : "docker"), base }];
}
