import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { ConfigError } from "../platform/errors.ts";
import type { CorsSettings } from "../platform/lib/cors.ts";
import { isObject, type JsonObject, withoutUnset } from "../platform/lib/json/json.ts";
import type { Env } from "./settings/setting.ts";

/** The languages of graphs. Each has graph hosts of its own. */
export type Language = "js" | "python";

/** An entry of `graphs` in langgraph.json. */
export interface GraphSpec {
  graph_id: string;
  language: Language;
  /** Absolute path of the module, or the dotted name of a Python module. */
  file: string;
  export_name: string;
  description: string | null;
}

export function readProject(file: string): JsonObject {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    throw new ConfigError(
      `${file} does not exist or cannot be read: create it or make it readable, or choose another file with --config.`,
    );
  }
  try {
    const project: unknown = JSON.parse(text);
    if (isObject(project)) return withoutUnset(project);
  } catch (error) {
    throw new ConfigError(`${file} is not valid JSON (${(error as Error).message}): correct the file.`);
  }
  throw new ConfigError(`${file} must contain a JSON object with a field "graphs".`);
}

export function readGraphs(field: unknown, project_dir: string, file: string): GraphSpec[] {
  if (!isObject(field) || Object.keys(field).length === 0) {
    throw new ConfigError(
      `${file}: the field "graphs" must map graph names to paths, for example {"agent": "./agent.ts:graph"}.`,
    );
  }
  return Object.entries(field).map(([graph_id, value]) => {
    const path = isObject(value) ? value.path : value;
    if (typeof path !== "string" || !MODULE_EXPORT.test(path)) {
      throw new ConfigError(
        `${file}: graphs.${graph_id} must have the form "./file.ts:exportName", "./file.py:name" or "package.module:name" (or {"path": "./file.ts:exportName"}), but is ${JSON.stringify(value)}.`,
      );
    }
    const description = isObject(value) && typeof value.description === "string" ? value.description : null;
    const parsed = parseExport(path, project_dir);
    if (!parsed)
      throw new ConfigError(
        `${file}: graphs.${graph_id} refers to ${JSON.stringify(path.replace(/:[^:]*$/, ""))}, which is neither a JavaScript or TypeScript file ("./agent.ts:graph"), nor a Python file ("./agent.py:graph") or module ("package.agent:graph").`,
      );
    return { graph_id, description, ...parsed };
  });
}

const MODULE_EXPORT = /^(.+):([\w$]+)$/;

/** Parses `"./file.ts:exportName"`, `"./file.py:name"` or `"package.module:name"`. Returns undefined for another value. */
export function parseExport(
  value: unknown,
  project_dir: string,
): Pick<GraphSpec, "language" | "file" | "export_name"> | undefined {
  const [, module = "", export_name = ""] = (typeof value === "string" && MODULE_EXPORT.exec(value)) || [];
  const language = languageOf(module);
  return language && { language, file: isDotted(module) ? module : resolve(project_dir, module), export_name };
}

const JS_FILE = /\.[cm]?[jt]sx?$/;
const PYTHON_FILE = /\.py$/;
const DOTTED_NAME = /^[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)*$/u;

const isDotted = (module: string): boolean => !JS_FILE.test(module) && !PYTHON_FILE.test(module);

/** Files of JavaScript and TypeScript have known extensions. Other modules are in Python, as in the official command line. */
function languageOf(module: string): Language | undefined {
  if (JS_FILE.test(module)) return "js";
  return PYTHON_FILE.test(module) || DOTTED_NAME.test(module) ? "python" : undefined;
}

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
      `${file}: python_version must be a string of the form "3.x" without a patch version, and at least "3.${OLDEST_MINOR}", but is ${JSON.stringify(version)}.`,
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

/** Reads `env` of langgraph.json: the path of a .env file, a map, or a list of variables that must be set in the parameter `env`. */
export function readEnvField(field: unknown, project_dir: string, file: string, env: Env): Record<string, string> {
  if (field === undefined || field === null) return {};
  if (typeof field === "string") {
    try {
      return parseEnv(readFileSync(resolve(project_dir, field), "utf8")) as Record<string, string>;
    } catch {
      throw new ConfigError(
        `${file}: the field "env" refers to the file ${field}, which cannot be read: create it or make it readable, or remove the field.`,
      );
    }
  }
  if (Array.isArray(field)) {
    const names = field.map(String);
    const missing = names.filter((name) => env[name] === undefined);
    // An instance of a deployment gets no variables that are empty or have a reserved name.
    if (missing.length === 0 || env.THREADMILL_ROLLOUT !== undefined)
      return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
    throw new ConfigError(
      `${file}: the environment does not contain every variable in the field "env". Missing: ${missing.join(", ")}.`,
    );
  }
  if (isObject(field)) return Object.fromEntries(Object.entries(field).map(([name, value]) => [name, String(value)]));
  throw new ConfigError(`${file}: the field "env" must be a file path, an object, or a list of variable names.`);
}

export function readPrefix(value: unknown, file: string): string {
  if (value === undefined || value === null || value === "" || value === "/") return "";
  if (typeof value === "string" && /^\/[\w./-]*[\w.-]$/.test(value)) return value;
  throw new ConfigError(
    `${file}: http.mount_prefix (or MOUNT_PREFIX) must be a path such as "/agents", without a slash at the end, but is ${JSON.stringify(value)}.`,
  );
}

const ROUTE_GROUPS = ["assistants", "threads", "runs", "store", "meta", "ui", "mcp", "a2a"] as const;

/** Groups that langgraph.json can disable. `runs` includes crons, /webhooks and /ag-ui; `meta` is /info, /metrics, /docs and /openapi.json. */
export type RouteGroup = (typeof ROUTE_GROUPS)[number];

/**
 * @param http `http` of langgraph.json
 * @throws ConfigError
 */
export function readDisabled(http: JsonObject, file: string): ReadonlySet<RouteGroup> {
  const disabled = ROUTE_GROUPS.filter((group) => {
    const value = http[`disable_${group}`] ?? false;
    if (typeof value !== "boolean") throw new ConfigError(`${file}: http.disable_${group} must be true or false.`);
    return value;
  });
  return new Set(disabled);
}

/** Accepted fields: `true` accepts a field with any content, an object lists the accepted fields within it. */
export interface KnownFields {
  [field: string]: true | KnownFields;
}

/** Key that matches any field name. A field that matches only this key may also have a value that is not an object. */
const ANY = "*";

/** docs/compatibility.md has a row for each of these fields. */
export const KNOWN_FIELDS: KnownFields = {
  $schema: true,
  graphs: { [ANY]: { path: true, description: true } },
  env: true,
  http: {
    mount_prefix: true,
    cors: true, // see readCors
    configurable_headers: true, // see readHeaders
    logging_headers: true,
    app: true, // see readHttpApp
    middleware_order: true,
    enable_custom_route_auth: true,
    // see readDisabled
    disable_assistants: true,
    disable_threads: true,
    disable_runs: true,
    disable_meta: true,
    disable_webhooks: true,
    disable_store: true,
    disable_ui: true,
    disable_mcp: true,
    disable_a2a: true,
  },
  // readWebhooks rejects unknown fields.
  webhooks: true,
  store: {
    index: { embed: true, dims: true, fields: true },
    ttl: { refresh_on_read: true, default_ttl: true, sweep_interval_minutes: true },
  }, // see readStore
  checkpointer: { ttl: { strategy: true, default_ttl: true, sweep_interval_minutes: true, sweep_limit: true } }, // see readThreadTtl
  // Studio has no special access, so `disable_studio_auth` is accepted but has nothing to disable.
  auth: { path: true, disable_studio_auth: true, cache: { cache_keys: true, ttl_seconds: true, max_size: true } }, // see readAuth
  encryption: { path: true }, // see readEncryption
  ui: { [ANY]: true }, // see readUi
  ui_config: { shared: true },
  // For Python graphs: see readPython() and control-plane/drivers/process/source/python.ts
  dependencies: true,
  python_version: true,
  pip_installer: true,
  node_version: true, // see requireNodeVersion in config.ts
};

/** These select a version or an image of other servers. Templates contain them, so they cause only a warning. */
export const IMAGE_FIELDS: readonly string[] = ["api_version", "image_distro", "keep_pkg_tools"];

/** Paths of the fields that are set in a langgraph.json but have no effect, such as `auth.openapi`. */
export const fieldsWithoutEffect = (project: JsonObject): string[] => unknownIn(project, KNOWN_FIELDS, "");

function unknownIn(value: JsonObject, known: KnownFields, path: string): string[] {
  return Object.entries(value).flatMap(([name, part]) => {
    const accepted = known[name] ?? known[ANY];
    if (accepted === true || isUnset(part)) return [];
    if (known[name] === undefined && accepted && !isObject(part)) return [];
    return accepted && isObject(part) ? unknownIn(part, accepted, `${path}${name}.`) : [path + name];
  });
}

/** Whether a field is empty or false. Such fields are ignored, because project templates contain them. */
const isUnset = (value: unknown): boolean => !value || (typeof value === "object" && Object.keys(value).length === 0);

const CORS_LISTS = ["allow_origins", "allow_methods", "allow_headers", "expose_headers"] as const;
const CORS_FIELDS: readonly string[] = [...CORS_LISTS, "allow_origin_regex", "allow_credentials", "max_age"];

/**
 * @param field `http.cors` of langgraph.json
 * @param origins `CORS_ALLOW_ORIGINS`
 * @throws ConfigError
 */
export function readCors(
  field: unknown,
  config_file: string,
  origins: readonly string[],
  studio: boolean,
): CorsSettings {
  const wrong = (name: string, remedy: string) => new ConfigError(`${config_file}: http.cors${name} ${remedy}.`);
  if (field !== undefined && field !== null && !isObject(field)) throw wrong("", "must be an object");
  const cors = field ?? {};
  for (const name of Object.keys(cors))
    if (!CORS_FIELDS.includes(name))
      throw wrong(`.${name}`, `is not supported; the supported fields are ${CORS_FIELDS.join(", ")}`);
  const texts = (name: (typeof CORS_LISTS)[number]): string[] | undefined => {
    const value = cors[name] ?? undefined;
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((text) => typeof text === "string")) return value as string[];
    throw wrong(`.${name}`, "must be a list of strings");
  };
  const { allow_origin_regex = null, allow_credentials = null, max_age = null } = cors;
  if (allow_credentials)
    throw wrong(
      ".allow_credentials",
      "must be false: cookies from pages of other origins are not accepted, and API keys are sent in a header",
    );
  if (max_age !== null && !(Number.isInteger(max_age) && (max_age as number) >= 0))
    throw wrong(".max_age", "must be a whole number of seconds");
  return {
    origins: [
      ...originsOf(origins, "CORS_ALLOW_ORIGINS"),
      ...originsOf(texts("allow_origins") ?? [], `${config_file}: http.cors.allow_origins`),
    ],
    origin_pattern: originPatternOf(allow_origin_regex, wrong),
    studio,
    methods: unlessAll(texts("allow_methods")),
    headers: unlessAll(texts("allow_headers")),
    exposed: texts("expose_headers") ?? [],
    max_age_s: max_age === null ? undefined : (max_age as number),
  };
}

/** For methods and headers, `*` has the same meaning as no list. */
const unlessAll = (texts: string[] | undefined) => (texts?.includes("*") ? undefined : texts);

function originsOf(texts: readonly string[], where: string): string[] {
  return texts.map((text) => {
    if (text === "*" || text === "null") return text;
    const origin = URL.canParse(text) ? new URL(text).origin : "null";
    // For application schemes, such as capacitor://localhost, URL returns the origin "null".
    if (origin === "null" ? /^[a-z][a-z0-9+.-]*:\/\/[^/]+$/.test(text) : text.replace(/\/$/, "") === origin)
      return text.replace(/\/$/, "");
    throw new ConfigError(
      `${where} must contain only origins, such as https://app.example, or "*" for all origins, but contains "${text}".`,
    );
  });
}

function originPatternOf(value: unknown, wrong: (name: string, remedy: string) => ConfigError): RegExp | undefined {
  if (value === null) return undefined;
  try {
    if (typeof value === "string") return new RegExp(`^(?:${value})$`);
  } catch {}
  throw wrong(".allow_origin_regex", "must be a valid regular expression");
}
