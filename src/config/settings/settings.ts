import { deploymentSettings } from "./deployments.ts";
import { limitSettings } from "./limits.ts";
import { oauthSettings } from "./oauth.ts";
import { runSettings } from "./runs.ts";
import { serverSettings } from "./server.ts";
import type { Env, Setting } from "./setting.ts";
import { storageSettings } from "./storage.ts";
import { tracingSettings } from "./tracing.ts";

/** All settings by their section in docs/configuration.md. */
export const SETTINGS = {
  "The server": serverSettings,
  "The database": storageSettings,
  "Graph hosts and runs": runSettings,
  Limits: limitSettings,
  Traces: tracingSettings,
  OAuth: oauthSettings,
  Deployments: deploymentSettings,
};

/** Command-line flags as commander reports them: names in camel case, `true` for a switch. */
export interface Flags {
  readonly [flag: string]: unknown;
  config?: string;
}

type Section = Record<string, Setting<unknown>>;
const ALL_SETTINGS = Object.values<Section>(SETTINGS).flatMap((section) => Object.values(section));

export type ValuesOf<S extends Section> = { [K in keyof S]: ReturnType<S[K]["read"]> };

/** @throws ConfigError that names the flag or variable */
export function readSection<S extends Section>(section: S, flags: Flags, env: Env): ValuesOf<S> {
  const entries = Object.entries(section).map(([key, setting]) => {
    const { text, name } = findText(setting, flags, env);
    return [key, setting.read(text, name)];
  });
  return Object.fromEntries(entries) as ValuesOf<S>;
}

/** Returns the settings that differ from their defaults, by flag or variable. The values of secrets are replaced with `[set]`. */
export function changedSettings(flags: Flags, env: Env): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const setting of ALL_SETTINGS) {
    const { text, variable } = findText(setting, flags, env);
    if (text !== undefined && text !== setting.default) changed[variable] = setting.secret ? "[set]" : text;
  }
  return changed;
}

/** Returns the names of `THREADMILL_...` variables that this version does not use, for example misspelled or renamed ones. */
export function unknownVariables(env: Env): string[] {
  const names = ALL_SETTINGS.flatMap((setting) => setting.env ?? []);
  const known = new Set([...names, ...CLIENT_VARIABLES]);
  return Object.keys(env).filter((name) => name.startsWith("THREADMILL_") && !known.has(name));
}

/** Variables that are read only by the commands that call a running service. */
const CLIENT_VARIABLES = ["THREADMILL_API_KEY"];

/** The key of a flag in {@link Flags}: `databaseUrl` for `--database-url <url>`. */
const flagKey = (flag: string): string =>
  flag.replace(/^--([\w-]+).*$/, "$1").replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

function findText({ env: names = [], flag }: Setting<unknown>, flags: Flags, env: Env) {
  const option = flag?.split(" ")[0];
  const name = option && names[0] ? `${option} (or ${names[0]})` : (option ?? names[0] ?? "");
  const given = flag === undefined ? undefined : flags[flagKey(flag)];
  // An empty value also overrides later names: an instance on SQLite has an empty database URL, although its graphs may use DATABASE_URL.
  if (given !== undefined) {
    const text = typeof given === "boolean" ? String(Number(given)) : String(given);
    return { text: text || undefined, name, variable: option ?? name };
  }
  const variable = names.find((candidate) => env[candidate] !== undefined);
  return { text: (variable && env[variable]) || undefined, name, variable: variable ?? name };
}
