import { resolve } from "node:path";
import { ConfigError } from "../../platform/errors.ts";
import { enabled, list, optional, setting } from "./setting.ts";

/** The database and the encryption keys: all that commands on the database need. */
export const storageSettings = {
  database_url: optional({
    env: ["THREADMILL_DATABASE_URL", "DATABASE_URL", "POSTGRES_URI"],
    flag: "--database-url <url>",
    visibility: "public",
    shown_default: "none: SQLite",
    secret: true,
    read: readDatabaseUrl,
    meaning:
      "Postgres database: `postgres://user:password@host:5432/database`. `THREADMILL_DATABASE_URL` is read first and is never passed to graphs, which may therefore have a `DATABASE_URL` of their own; `POSTGRES_URI` is read last.",
  }),
  data_dir: setting({
    env: ["THREADMILL_DATA"],
    flag: "--data <folder>",
    visibility: "public",
    default: ".threadmill",
    read: (folder) => resolve(folder),
    meaning:
      "Folder for data, created when it is missing: the SQLite databases (`threadmill.db` with `-wal`, `-shm` and `.note`, `experiments.db`, `lock.db`, `owner.pid`) and `encryption.keys`; with Postgres, too, the cache of type schemas and, in `control/`, uploads, builds and data of deployments.",
  }),
  encryption_keys: setting({
    env: ["THREADMILL_ENCRYPTION_KEYS"],
    visibility: "public",
    secret: true,
    default: "",
    shown_default: "a file in the data folder",
    read: list,
    meaning:
      "Comma-separated keys that encrypt secrets in the database: 32 bytes each, in base64 (`openssl rand -base64 32`). The first key encrypts, all keys decrypt. Postgres requires it. See [security.md](security.md#encryption-at-rest).",
  }),
  encryption_keys_file: optional({
    env: ["THREADMILL_ENCRYPTION_KEYS_FILE"],
    visibility: "advanced",
    shown_default: "`encryption.keys` in the data folder",
    read: (file) => resolve(file),
    meaning:
      "File with encryption keys, one per line, instead of `THREADMILL_ENCRYPTION_KEYS`. Without either, the first start on SQLite creates `encryption.keys` in the data folder.",
  }),
  share_data: setting({
    env: ["THREADMILL_SHARE_DATA"],
    flag: "--share-data",
    visibility: "advanced",
    default: "0",
    shown_default: "off",
    read: enabled,
    meaning:
      "Allow several processes of one machine to use the same data folder. Every process must set it; the old and the new revision of a deployment do during a rollout.",
  }),
};

function readDatabaseUrl(url: string, name: string): string {
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new ConfigError(`${name} must look like postgres://user:password@host:5432/database.`);
}
