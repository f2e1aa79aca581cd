import { ConfigError } from "../platform/errors.ts";
import { headerSelection, type SelectHeaders } from "../platform/lib/header-selection.ts";
import { isObject, type JsonObject } from "../platform/lib/json/json.ts";
import { parseExport } from "./project.ts";

/** Path of the HTTP app's field in langgraph.json, and the name under which a failure to load the app is reported. */
export const HTTP_APP = "http.app";

/** Path of the field of the encryption module, and the name under which a failure to load it is reported. */
export const ENCRYPTION = "encryption.path";

const HEADER_FIELDS: Readonly<Record<string, "includes" | "excludes">> = {
  includes: "includes",
  include: "includes",
  excludes: "excludes",
  exclude: "excludes",
};

/**
 * Reads a field of `http` that selects request headers. Returns undefined if it selects none.
 *
 * @throws ConfigError
 */
export function readHeaders(
  http: JsonObject,
  name: "configurable_headers" | "logging_headers",
  file: string,
): SelectHeaders | undefined {
  const field = http[name] ?? {};
  const wrong = (path: string, remedy: string) => new ConfigError(`${file}: http.${name}${path} ${remedy}.`);
  if (!isObject(field)) throw wrong("", 'must be an object such as {"includes": ["x-user-*"], "excludes": []}');
  const patterns = { includes: [] as string[], excludes: [] as string[] };
  for (const [key, value] of Object.entries(field)) {
    const list = Object.hasOwn(HEADER_FIELDS, key) ? HEADER_FIELDS[key] : undefined;
    if (!list) throw wrong(`.${key}`, 'is unknown: use "includes" and "excludes"');
    const isList =
      Array.isArray(value) && value.every((text) => typeof text === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(text));
    if (value !== null && !isList)
      throw wrong(`.${key}`, "must be a list of header names, in which * matches any text");
    patterns[list].push(...((value ?? []) as string[]));
  }
  return patterns.includes.length === 0 ? undefined : headerSelection(patterns.includes, patterns.excludes);
}

/**
 * Reads the HTTP app of the project. Returns undefined if the project has none.
 *
 * @param http `http` of langgraph.json
 * @throws ConfigError
 */
export function readHttpApp(http: JsonObject, project_dir: string, config_file: string) {
  const wrong = (name: string, remedy: string) =>
    new ConfigError(`${config_file}: http.${name} ${remedy}, but is ${JSON.stringify(http[name])}.`);
  const { app, middleware_order = "middleware_first", enable_custom_route_auth: requires_auth = false } = http;
  if (middleware_order !== "middleware_first" && middleware_order !== "auth_first")
    throw wrong("middleware_order", 'must be "middleware_first" or "auth_first"');
  if (typeof requires_auth !== "boolean") throw wrong("enable_custom_route_auth", "must be true or false");
  if (app === undefined || app === null || app === "") return undefined;
  const module = parseExport(app, project_dir);
  if (!module)
    throw wrong(
      "app",
      'must be "./file.ts:exportName" in JavaScript or TypeScript (a Hono app, an object with fetch, or a function (request) => Response), or "./file.py:name" in Python (an ASGI app)',
    );
  return {
    app: module,
    is_auth_first: middleware_order === "auth_first",
    requires_auth,
  };
}

const DEFAULT_TTL_SECONDS = 60;
const MAX_TTL_SECONDS = 86_400;
const DEFAULT_SIZE = 1_000;
const MAX_SIZE = 1_000_000;

/**
 * Reads `auth` of langgraph.json. Returns undefined if `auth.path` is not set.
 *
 * @throws ConfigError
 */
export function readAuth(field: unknown, project_dir: string, config_file: string) {
  const wrong = (name: string, remedy: string) => new ConfigError(`${config_file}: the field "auth${name}" ${remedy}.`);
  if (field === undefined || field === null) return undefined;
  if (!isObject(field)) throw wrong("", "must be an object");
  const { path, cache } = field;
  if (path === undefined || path === null) return undefined;
  const module = parseExport(path, project_dir);
  if (!module)
    throw wrong(".path", `must be "./file.ts:exportName" or "./file.py:name", but is ${JSON.stringify(path)}`);
  return { module, cache: readCache(cache, wrong) };
}

/**
 * Reads `encryption` of langgraph.json. Returns undefined if `encryption.path` is not set.
 *
 * @throws ConfigError
 */
export function readEncryption(field: unknown, project_dir: string, config_file: string) {
  const wrong = (name: string, remedy: string) =>
    new ConfigError(`${config_file}: the field "encryption${name}" ${remedy}.`);
  if (field === undefined || field === null) return undefined;
  if (!isObject(field)) throw wrong("", "must be an object");
  const { path } = field;
  if (path === undefined || path === null) return undefined;
  const module = parseExport(path, project_dir);
  if (!module) throw wrong(".path", `must be "./file.py:name", but is ${JSON.stringify(path)}`);
  if (module.language !== "python")
    throw wrong(".path", `is ${path}, but handlers must be in Python: the JavaScript SDK has no class for them`);
  return { file: module.file, export_name: module.export_name };
}

function readCache(cache: unknown, wrong: (name: string, remedy: string) => ConfigError) {
  if (cache === undefined || cache === null) return undefined;
  if (!isObject(cache)) throw wrong(".cache", "must be an object");
  const { cache_keys, ttl_seconds = DEFAULT_TTL_SECONDS, max_size = DEFAULT_SIZE } = cache;
  if (!Array.isArray(cache_keys) || cache_keys.length === 0 || !cache_keys.every(isHeaderName))
    throw wrong(".cache.cache_keys", 'must be a list of header names, such as ["authorization"]');
  if (typeof ttl_seconds !== "number" || !(ttl_seconds > 0 && ttl_seconds <= MAX_TTL_SECONDS))
    throw wrong(".cache.ttl_seconds", `must be a number of seconds, greater than 0 and at most ${MAX_TTL_SECONDS}`);
  if (!Number.isInteger(max_size) || (max_size as number) < 1 || (max_size as number) > MAX_SIZE)
    throw wrong(".cache.max_size", `must be a whole number from 1 to ${MAX_SIZE}`);
  return { cache_keys, ttl_ms: ttl_seconds * 1_000, max_size: max_size as number };
}

const isHeaderName = (name: unknown): name is string => typeof name === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(name);
