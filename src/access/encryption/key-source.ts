import { join } from "node:path";
import { ConfigError } from "../../platform/errors.ts";
import { HOW_TO_MAKE_ONE } from "./encryption-key.ts";

/** Where the encryption keys come from. */
export type KeySource =
  | { kind: "environment"; keys: readonly string[] }
  | {
      kind: "file";
      path: string;
      /** Whether it is Threadmill's own, in the data folder, made when there is none. */
      own: boolean;
    };

/** What is configured; the names are those of the settings. */
export interface KeySettings {
  encryption_keys: readonly string[];
  encryption_keys_file: string | undefined;
  data_dir: string;
  database_url: string | undefined;
}

/** How people call the variable. */
export const KEYS_VARIABLE = "THREADMILL_ENCRYPTION_KEYS";

/** @throws ConfigError when nothing is configured and there is no data folder of one process to keep a key in */
export function keySourceOf(settings: KeySettings): KeySource {
  const { encryption_keys: keys, encryption_keys_file: path, data_dir, database_url } = settings;
  if (keys.length > 0 && path !== undefined) {
    throw new ConfigError(`${KEYS_VARIABLE} and ${KEYS_VARIABLE}_FILE are both set: keep one of them.`);
  }
  if (keys.length > 0) return { kind: "environment", keys };
  if (path !== undefined) return { kind: "file", path, own: false };
  if (database_url === undefined) return { kind: "file", path: join(data_dir, "encryption.keys"), own: true };
  throw new ConfigError(
    `On Postgres ${KEYS_VARIABLE} must hold a key for the secrets in the database, the same for all processes: make one with "${HOW_TO_MAKE_ONE}".`,
  );
}
