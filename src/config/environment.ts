import { existsSync } from "node:fs";
import { delimiter, dirname, resolve } from "node:path";
import { readEnvField } from "./project.ts";
import type { Env } from "./settings/setting.ts";

/** Secrets of the service. Graphs do not need them, and the author of a graph is not always the operator. */
const WITHHELD = [
  "API_KEYS",
  "THREADMILL_DATABASE_URL",
  "THREADMILL_ENCRYPTION_KEYS",
  "THREADMILL_ENCRYPTION_KEYS_FILE",
];
/** Withheld even when langgraph.json asks for them. */
const ALWAYS_WITHHELD = ["THREADMILL_ENCRYPTION_KEYS", "THREADMILL_ENCRYPTION_KEYS_FILE"];
/** Withheld when they are the service's own database: a graph may use another one by the same name. */
const DATABASES = ["DATABASE_URL", "POSTGRES_URI"];

/**
 * Environment of the graph hosts.
 *
 * @param field `env` of langgraph.json
 * @throws ConfigError
 */
export function readGraphEnv(
  field: unknown,
  project: { project_dir: string; config_file: string; database_url: string | undefined },
  env: Env,
): Record<string, string> {
  const tsconfig = resolve(project.project_dir, "tsconfig.json");
  const own_database = DATABASES.filter((name) => env[name] === project.database_url);
  return {
    // tsx reads path aliases from it; by default it looks in the folder in which the program was started.
    ...(existsSync(tsconfig) && { TSX_TSCONFIG_PATH: tsconfig }),
    ...without([...WITHHELD, ...own_database], env as Record<string, string>),
    ...without(ALWAYS_WITHHELD, readEnvField(field, project.project_dir, project.config_file, env)),
  };
}

const without = (names: string[], env: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));

/** Language, time zone, temporary files and trusted certificates: not secret, and needed by most programs. */
const PASSED_ON = ["LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/** Environment of programs that the service starts. The Node that runs this process is first in the path. */
export function readSystemEnv(env: Env): Record<string, string> {
  const found = PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name] as string]]));
  return { ...Object.fromEntries(found), PATH: [dirname(process.execPath), env.PATH ?? ""].join(delimiter) };
}
