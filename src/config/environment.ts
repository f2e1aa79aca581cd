import { existsSync } from "node:fs";
import { delimiter, dirname, resolve } from "node:path";
import { readEnvField } from "./project.ts";
import type { Env } from "./settings/setting.ts";

/** Never passed to graphs, even if langgraph.json names them. */
const ALWAYS_WITHHELD = ["THREADMILL_ENCRYPTION_KEYS", "THREADMILL_ENCRYPTION_KEYS_FILE"];
/** Secrets of this process. Graphs do not inherit them, because the author of a graph is not always the operator. */
const WITHHELD = ["API_KEYS", "THREADMILL_DATABASE_URL", "THREADMILL_WEBHOOK_SECRET", ...ALWAYS_WITHHELD];
/**
 * Not inherited by graphs if the value is the URL of the service's own database. Another value may be the URL of a database that
 * graphs use.
 */
const DATABASES = ["DATABASE_URL", "POSTGRES_URI"];

/** @throws ConfigError for an invalid `field`, which is `env` of langgraph.json */
export function readGraphEnv(
  field: unknown,
  project: { project_dir: string; config_file: string; database_url: string | undefined },
  env: Env,
): Record<string, string> {
  const tsconfig = resolve(project.project_dir, "tsconfig.json");
  const own_database = DATABASES.filter((name) => env[name] === project.database_url);
  return {
    // tsx reads path aliases from this file. By default, it uses the tsconfig.json in the working directory of the process.
    ...(existsSync(tsconfig) && { TSX_TSCONFIG_PATH: tsconfig }),
    ...without([...WITHHELD, ...own_database], env as Record<string, string>),
    ...without(ALWAYS_WITHHELD, readEnvField(field, project.project_dir, project.config_file, env)),
  };
}

const without = (names: string[], env: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));

/** Variables that are passed to other programs: language, time zone, temporary files and trusted certificates. */
const PASSED_ON = ["LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/** Returns the environment of programs that the service starts. In PATH, the folder of this process's Node.js comes first. */
export function readSystemEnv(env: Env): Record<string, string> {
  const found = PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name] as string]]));
  return { ...Object.fromEntries(found), PATH: [dirname(process.execPath), env.PATH ?? ""].join(delimiter) };
}
