import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { readEnvField } from "./project.ts";
import type { Env } from "./values.ts";

/** What lets in or opens what is sealed. Graphs have no use for it, and whoever writes one is not always the operator. */
const KEPT_BACK = ["API_KEYS", "THREADMILL_ENCRYPTION_KEYS", "THREADMILL_ENCRYPTION_KEYS_FILE"];
const NEVER_GIVEN = ["THREADMILL_ENCRYPTION_KEYS", "THREADMILL_ENCRYPTION_KEYS_FILE"];
/** Kept back where they lead to the service's own database: a graph may have one of its own by the same name. */
const DATABASES = ["DATABASE_URL", "POSTGRES_URI"];

/**
 * The environment of the graph hosts: that of this process less the service's own secrets, and what the field `env` of
 * langgraph.json adds or asks for by name. The encryption keys are not to be had.
 */
export function readGraphEnv(
  field: unknown,
  {
    project_dir,
    config_file,
    database_url,
  }: { project_dir: string; config_file: string; database_url: string | undefined },
  env: Env,
): Record<string, string> {
  const tsconfig = resolve(project_dir, "tsconfig.json");
  const own = DATABASES.filter((name) => env[name] === database_url);
  return {
    // Where tsx looks for path aliases; otherwise in the folder in which the program was started.
    ...(existsSync(tsconfig) && { TSX_TSCONFIG_PATH: tsconfig }),
    ...without([...KEPT_BACK, ...own], env as Record<string, string>),
    ...without(NEVER_GIVEN, readEnvField(field, project_dir, config_file, env)),
  };
}

const without = (names: string[], env: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
