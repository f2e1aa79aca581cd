import type { Database } from "../../../platform/database/database.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { repeating, type Service } from "../../../platform/lib/service.ts";
import { deleteEndedTemporaryRuns, deleteExpiredEvents } from "../../storage/events-retention.ts";

/** Not more often than events can expire, and at most this often. */
const EVERY_MS = 10_000;
/** Runs whose events go in one transaction, so that no other write waits for long. */
const BATCH = 200;

/** Deletes the events of runs that ended long enough ago, and what is left of stateless runs. */
export function retention(database: Database, retention_ms: number, log: Log): Service {
  const sweep = async () => {
    while ((await database.write((tx) => deleteExpiredEvents(tx, retention_ms, BATCH))) > 0);
    while ((await database.write((tx) => deleteEndedTemporaryRuns(tx, retention_ms, BATCH))) > 0);
  };
  return repeating(Math.min(EVERY_MS, Math.max(retention_ms, 50)), sweep, (error) =>
    log.error({ error }, "deleting old events failed"),
  );
}
