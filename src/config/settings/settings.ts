import { deploymentSettings } from "./deployments.ts";
import { oauthSettings } from "./oauth.ts";
import { runSettings } from "./runs.ts";
import { serverSettings } from "./server.ts";
import type { Env, Setting } from "./setting.ts";
import { storageSettings } from "./storage.ts";

/** Every setting, by the section of docs/configuration.md that lists it. */
export const SETTINGS = {
  "The server": serverSettings,
  "The database": storageSettings,
  "Graph hosts and runs": runSettings,
  OAuth: oauthSettings,
  Deployments: deploymentSettings,
};

/** Values of the flags of the command line: camel case as commander reports them, `true` for a switch. */
export interface Flags {
  readonly [flag: string]: unknown;
  config?: string;
}

type Section = Record<string, Setting<unknown>>;
export type ValuesOf<S extends Section> = { [K in keyof S]: ReturnType<S[K]["read"]> };

/** The settings of one section. Throws a ConfigError that names the flag or variable. */
export function readSection<S extends Section>(section: S, flags: Flags, env: Env): ValuesOf<S> {
  const entries = Object.entries(section).map(([key, setting]) => {
    const { text, name } = findText(setting, flags, env);
    return [key, setting.read(text, name)];
  });
  return Object.fromEntries(entries) as ValuesOf<S>;
}

/** The settings that differ from their defaults, by the name of the variable or flag. Secrets read `[set]`. */
export function changedSettings(flags: Flags, env: Env): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const section of Object.values<Section>(SETTINGS))
    for (const setting of Object.values(section)) {
      const { text, variable } = findText(setting, flags, env);
      if (text !== undefined && text !== setting.default) changed[variable] = setting.secret ? "[set]" : text;
    }
  return changed;
}

/** Variables of the environment that begin with `THREADMILL_` and are no setting of this version: misspelt or renamed. */
export function unknownVariables(env: Env): string[] {
  const known = new Set(
    Object.values<Section>(SETTINGS).flatMap((section) =>
      Object.values(section).flatMap(({ env: names = [] }) => names),
    ),
  );
  return Object.keys(env).filter(
    (name) => /^THREADMILL_/.test(name) && !known.has(name) && !CLIENT_VARIABLES.has(name),
  );
}

/** Read by commands that call a running service. */
const CLIENT_VARIABLES = new Set(["THREADMILL_API_KEY", "THREADMILL_URL"]);

/** `--database-url <url>` is `databaseUrl` in {@link Flags}. */
const flagKey = (flag: string): string =>
  flag.replace(/^--([\w-]+).*$/, "$1").replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

function findText({ env: names = [], flag }: Setting<unknown>, flags: Flags, env: Env) {
  const option = flag?.split(" ")[0];
  const name = option && names[0] ? `${option} (or ${names[0]})` : (option ?? names[0] ?? "");
  const given = flag === undefined ? undefined : flags[flagKey(flag)];
  // An empty flag or variable hides the variables after it: an instance without Postgres is started with an empty --database-url, and its
  // graphs may have a DATABASE_URL.
  if (given !== undefined) {
    const text = typeof given === "boolean" ? String(Number(given)) : String(given);
    return { text: text || undefined, name, variable: option ?? name };
  }
  const variable = names.find((candidate) => env[candidate] !== undefined);
  return { text: (variable && env[variable]) || undefined, name, variable: variable ?? name };
}
