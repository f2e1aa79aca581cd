import type { Tx } from "../platform/database/database.ts";
import { type BackgroundService, periodicService } from "../platform/lib/background-service.ts";
import type { VaultContext } from "./context.ts";

const INTERVAL_MS = 60_000;
/** Rows per transaction, so that other writes wait only briefly. */
const BATCH_SIZE = 500;

/** @param deleteBatch deletes at most `limit` old rows and returns their number */
export function retention(
  { database, log }: Pick<VaultContext, "database" | "log">,
  table: string,
  deleteBatch: (tx: Tx, limit: number) => Promise<number>,
  interval_ms = INTERVAL_MS,
): BackgroundService {
  const deleteAll = async () => {
    while ((await database.write((tx) => deleteBatch(tx, BATCH_SIZE))) === BATCH_SIZE);
  };
  return periodicService(interval_ms, deleteAll, (error) =>
    log.error({ error, table }, "deleting expired rows failed"),
  );
}
