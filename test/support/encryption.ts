/** The encryption key of the services that tests start on Postgres. On SQLite the service makes a file of its own. */
export const TEST_ENCRYPTION_KEY = Buffer.alloc(32, "threadmill").toString("base64");

/** What a service needs in its environment for a database, by its URL. */
export const encryptionEnv = (database_url: string | undefined): Record<string, string> =>
  database_url === undefined ? {} : { THREADMILL_ENCRYPTION_KEYS: TEST_ENCRYPTION_KEY };
