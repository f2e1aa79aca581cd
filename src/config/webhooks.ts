import { ConfigError } from "../platform/errors.ts";
import { isObject } from "../platform/lib/json/json.ts";
import type { Env } from "./settings/setting.ts";

/** Headers that the service or the HTTP client sets. */
const RESERVED_HEADERS =
  /^(webhook-(id|timestamp|signature)|content-(type|length)|host|connection|transfer-encoding|keep-alive|upgrade|expect)$/i;

const MAX_URL_LENGTH = 65_536;

/**
 * Reads `webhooks` of langgraph.json.
 *
 * @param disabled `http.disable_webhooks`
 * @param env variables to which header values may refer
 * @throws ConfigError
 */
export function readWebhooks(field: unknown, disabled: unknown, config_file: string, env: Env) {
  const wrong = (path: string, remedy: string) => new ConfigError(`${config_file}: webhooks${path} ${remedy}.`);
  const object = (value: unknown, path: string, names?: readonly string[]) => {
    if (value === undefined || value === null) return {};
    if (!isObject(value)) throw wrong(path, "must be an object");
    for (const name of Object.keys(value))
      if (names && !names.includes(name))
        throw wrong(`${path}.${name}`, `is unknown. Known fields: ${names.join(", ")}`);
    return value;
  };
  const webhooks = object(field, "", ["env_prefix", "headers", "url"]);
  const url = object(webhooks.url, ".url", [
    "require_https",
    "allowed_domains",
    "allowed_ports",
    "max_url_length",
    "disable_loopback",
  ]);
  /** Returns the value of a field of `url`; undefined if it is not set. */
  const read = <T>(name: string, isValid: (value: unknown) => value is T, remedy: string): T | undefined => {
    const value = url[name] ?? undefined;
    if (value === undefined || isValid(value)) return value;
    throw wrong(`.url.${name}`, `${remedy}, but is ${JSON.stringify(value)}`);
  };
  const env_prefix = webhooks.env_prefix ?? "LG_WEBHOOK_";
  if (typeof env_prefix !== "string" || env_prefix === "") throw wrong(".env_prefix", "must be a non-empty string");
  const headers = Object.entries(object(webhooks.headers, ".headers")).map(([name, template]) => {
    const path = `.headers.${name}`;
    if (typeof template !== "string") throw wrong(path, "must be a string");
    if (RESERVED_HEADERS.test(name)) throw wrong(path, "is a header that the service sets: remove it");
    const value = fillIn(template, (variable) => {
      if (!variable.startsWith(env_prefix))
        throw wrong(
          path,
          `uses the variable ${variable}, but only variables with the prefix ${env_prefix} (webhooks.env_prefix) are allowed`,
        );
      return env[variable] ?? fail(wrong(path, `uses the variable ${variable}, which is not set`));
    });
    if (value.includes("${{"))
      throw wrong(path, `contains an invalid variable reference: use the form \${{ env.NAME }}`);
    try {
      new Headers({ [name]: value });
    } catch {
      throw wrong(path, "is not a valid header: check the characters of its name and value");
    }
    return [name, value] as const;
  });
  return {
    enabled: !disabled,
    headers: Object.fromEntries(headers),
    url: {
      require_https: read("require_https", isBoolean, "must be true or false"),
      allowed_domains: read(
        "allowed_domains",
        isListOf(isDomain),
        "must be a list of host names such as example.com or *.example.com",
      )?.map((domain) => domain.toLowerCase()),
      allowed_ports: read("allowed_ports", isListOf(isPort), "must be a list of integers from 1 to 65535"),
      max_url_length:
        read("max_url_length", isLength, `must be an integer from 1 to ${MAX_URL_LENGTH}`) ?? MAX_URL_LENGTH,
      disable_loopback: read("disable_loopback", isBoolean, "must be true or false") ?? true,
    },
  };
}

const fillIn = (template: string, find: (variable: string) => string): string =>
  template.replaceAll(/\$\{\{\s*env\.(\w+)\s*\}\}/g, (_, variable) => find(variable));

function fail(error: Error): never {
  throw error;
}

const isBoolean = (value: unknown) => typeof value === "boolean";
const isWithin =
  (max: number) =>
  (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max;
const isPort = isWithin(65_535);
const isLength = isWithin(MAX_URL_LENGTH);
const isDomain = (value: unknown): value is string => typeof value === "string" && /^(\*\.)?[^*\s/:]+$/.test(value);
const isListOf =
  <T>(isItem: (value: unknown) => value is T) =>
  (value: unknown): value is T[] =>
    Array.isArray(value) && value.every(isItem);
