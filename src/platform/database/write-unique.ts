import type { Database, Tx } from "./database.ts";

const TRIES = 3;

/**
 * A write that first looks whether a name or an id is free. On Postgres two of them at the same moment may both find it so, and
 * a unique index refuses the second: that one begins anew, and says itself what is taken.
 */
export async function writeUnique<T>(database: Database, write: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await database.write(write);
    } catch (error) {
      if (attempt === TRIES || !database.read.dialect.isUniqueViolation(error)) throw error;
    }
  }
}
