import { join } from "node:path";
import { ConfigError } from "../../platform/errors.ts";
import { KEY_GENERATION_COMMAND } from "./encryption-key.ts";

/** A managed key file is in the data folder and is created by Threadmill. */
export type KeySource =
  | { kind: "environment"; keys: readonly string[] }
  | { kind: "file"; path: string; is_managed: boolean };

export interface KeySettings {
  encryption_keys: readonly string[];
  encryption_keys_file: string | undefined;
  data_dir: string;
  database_url: string | undefined;
}

/** The variable with this name plus `_FILE` contains the path of a key file. */
export const KEYS_VARIABLE = "THREADMILL_ENCRYPTION_KEYS";

/** @throws ConfigError if both variables are set, or if neither is set on Postgres, where several processes must share the keys */
export function keySourceOf(settings: KeySettings): KeySource {
  const { encryption_keys: keys, encryption_keys_file: path, data_dir, database_url } = settings;
  if (keys.length > 0 && path !== undefined)
    throw new ConfigError(`${KEYS_VARIABLE} and ${KEYS_VARIABLE}_FILE are both set: set only one of them.`);
  if (keys.length > 0) return { kind: "environment", keys };
  if (path !== undefined) return { kind: "file", path, is_managed: false };
  if (database_url === undefined) return { kind: "file", path: join(data_dir, "encryption.keys"), is_managed: true };
  throw new ConfigError(
    `Neither ${KEYS_VARIABLE} nor ${KEYS_VARIABLE}_FILE is set. On Postgres, one of them is required, and all processes must use the same keys. Generate a key with "${KEY_GENERATION_COMMAND}".`,
  );
}
