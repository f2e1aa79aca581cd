import { resolve } from "node:path";
import { ConfigError } from "../../platform/errors.ts";
import { enabled, list, setting } from "./setting.ts";

/** The database and the encryption keys. Commands that access only the database, such as `migrate`, also read these settings. */
export const storageSettings = {
  database_url: setting(
    ["--database-url <url>", "THREADMILL_DATABASE_URL", "DATABASE_URL", "POSTGRES_URI"],
    readDatabaseUrl,
    {
      visibility: "public",
      secret: true,
      shown_default: "none (SQLite)",
      meaning:
        "Postgres database: `postgres://user:password@host:5432/database`. `THREADMILL_DATABASE_URL` takes precedence and is never passed to graphs, so graphs can use a different `DATABASE_URL`. `POSTGRES_URI` has the lowest precedence.",
    },
  ),
  database_pooler_url: setting("THREADMILL_DATABASE_POOLER_URL", readDatabaseUrl, {
    secret: true,
    shown_default: "none",
    meaning:
      "URL of a PgBouncer in transaction mode for the Postgres database of `--database-url`. The connections of deployments and one notification connection per process use `--database-url`. All other connections use PgBouncer.",
  }),
  data_dir: setting(["--data <folder>", "THREADMILL_DATA"], (folder) => resolve(folder), {
    visibility: "public",
    default: ".threadmill",
    meaning:
      "Data folder. It is created if it does not exist. With SQLite, it contains the databases `threadmill.db` and `experiments.db` (each with a `-wal` and a `-shm` file), `threadmill.db.note`, the lock files `lock.db` and `owner.pid`, and `encryption.keys`. With SQLite and with Postgres, it also contains the cache of type schemas and, in `control/`, the uploads, builds and data of deployments.",
  }),
  encryption_keys: setting("THREADMILL_ENCRYPTION_KEYS", list, {
    visibility: "public",
    secret: true,
    default: "",
    shown_default: "a file in the data folder",
    meaning:
      "Comma-separated keys that encrypt secrets in the database: 32 bytes each, in base64 (`openssl rand -base64 32`). The first key encrypts; all keys decrypt. With Postgres, either this or `THREADMILL_ENCRYPTION_KEYS_FILE` is required. See [security.md](security.md#encryption-at-rest).",
  }),
  encryption_keys_file: setting("THREADMILL_ENCRYPTION_KEYS_FILE", (file) => resolve(file), {
    shown_default: "`encryption.keys` in the data folder",
    meaning:
      "File with encryption keys, one per line, as an alternative to `THREADMILL_ENCRYPTION_KEYS`. If neither is set, the first start with SQLite creates `encryption.keys` in the data folder.",
  }),
  share_data: setting(["--share-data", "THREADMILL_SHARE_DATA"], enabled, {
    default: "0",
    shown_default: "off",
    meaning:
      "Allow several processes on one machine to use the same data folder. Every process must enable this setting. Instances of deployments on SQLite run with this setting, because a rollout starts new instances before it stops the old ones.",
  }),
};

function readDatabaseUrl(url: string, name: string): string {
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new ConfigError(`${name} must have the form postgres://user:password@host:5432/database.`);
}
