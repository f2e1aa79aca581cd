import { resolve } from "node:path";
import { ConfigError } from "../platform/errors.ts";
import { isObject } from "../platform/lib/json/json.ts";

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
  const [, file, export_name] = (typeof path === "string" && /^(\..+|\/.+):([\w$]+)$/.exec(path)) || [];
  if (file === undefined || export_name === undefined)
    throw wrong(".path", `must be "./file.ts:exportName", but is ${JSON.stringify(path)}`);
  if (file.endsWith(".py"))
    throw wrong(
      ".path",
      `is the Python file ${file}, but handlers must be JavaScript or TypeScript: use a .ts or .js module`,
    );
  return { module: { file: resolve(project_dir, file), export_name }, cache: readCache(cache, wrong) };
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
