import { ConfigError } from "../platform/errors.ts";
import type { CorsSettings } from "../platform/lib/cors.ts";
import { isObject } from "../platform/lib/json/json.ts";
import { type Env, list } from "./values.ts";

const LISTS = ["allow_origins", "allow_methods", "allow_headers", "expose_headers"] as const;
const FIELDS: readonly string[] = [...LISTS, "allow_origin_regex", "allow_credentials", "max_age"];

/**
 * `http.cors` of langgraph.json, with the origins of `CORS_ALLOW_ORIGINS` besides its own.
 *
 * @throws ConfigError for a value of another type, and for `allow_credentials`
 */
export function readCors(field: unknown, config_file: string, env: Env, studio: boolean): CorsSettings {
  const wrong = (name: string, remedy: string) => new ConfigError(`${config_file}: http.cors${name} ${remedy}.`);
  if (field !== undefined && field !== null && !isObject(field)) throw wrong("", "must be an object");
  const cors = field ?? {};
  for (const name of Object.keys(cors))
    if (!FIELDS.includes(name)) throw wrong(`.${name}`, `is not known: use ${FIELDS.join(", ")}`);
  const texts = (name: (typeof LISTS)[number]): string[] | undefined => {
    const value = cors[name] ?? undefined;
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((text) => typeof text === "string")) return value as string[];
    throw wrong(`.${name}`, "must be a list of texts");
  };
  const { allow_origin_regex = null, allow_credentials = null, max_age = null } = cors;
  if (allow_credentials)
    throw wrong(".allow_credentials", "must be false: callers show a key in a header, never a cookie");
  if (max_age !== null && !(Number.isInteger(max_age) && (max_age as number) >= 0))
    throw wrong(".max_age", "must be a whole number of seconds");
  return {
    origins: [
      ...originsOf(list(env.CORS_ALLOW_ORIGINS), "CORS_ALLOW_ORIGINS"),
      ...originsOf(texts("allow_origins") ?? [], `${config_file}: http.cors.allow_origins`),
    ],
    origin_pattern: patternOf(allow_origin_regex, wrong),
    studio,
    methods: everything(texts("allow_methods")),
    headers: everything(texts("allow_headers")),
    exposed: texts("expose_headers") ?? [],
    max_age_s: max_age === null ? undefined : (max_age as number),
  };
}

/** `*` among methods or headers permits as much as saying nothing. */
const everything = (texts: string[] | undefined) => (texts?.includes("*") ? undefined : texts);

function originsOf(texts: readonly string[], where: string): string[] {
  return texts.map((text) => {
    if (text === "*" || text === "null") return text;
    const origin = URL.canParse(text) ? new URL(text).origin : "null";
    // Schemes of programs, such as capacitor://localhost, have no origin of their own for URL.
    if (origin === "null" ? /^[a-z][a-z0-9+.-]*:\/\/[^/]+$/.test(text) : text.replace(/\/$/, "") === origin)
      return text.replace(/\/$/, "");
    throw new ConfigError(`${where} must list origins such as https://app.example, or *, but has "${text}".`);
  });
}

function patternOf(value: unknown, wrong: (name: string, remedy: string) => ConfigError): RegExp | undefined {
  if (value === null) return undefined;
  try {
    if (typeof value === "string") return new RegExp(`^(?:${value})$`);
  } catch {}
  throw wrong(".allow_origin_regex", "must be a regular expression");
}
