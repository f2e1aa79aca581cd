import { sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";

const endedBefore = (older_than_ms: number) =>
  sql<boolean>`ended_at is not null and ended_at < now_ms() - ${older_than_ms}`;

/**
 * Deletes the events of runs that ended before the given age, of so many runs at a time, and notes in each run how far
 * they went. Returns how many runs that were.
 */
export async function deleteExpiredEvents(tx: Tx, older_than_ms: number, limit: number): Promise<number> {
  const expired = await tx.all(
    tx.k
      .selectFrom("runs")
      .select("run_id")
      .where(endedBefore(older_than_ms))
      .where("expired_seq", "is", null)
      .orderBy("ended_at")
      .limit(limit),
  );
  if (expired.length === 0) return 0;
  const ids = expired.map(({ run_id }) => run_id);
  const last = sql<number>`coalesce((select max(seq) from run_events where run_events.run_id = runs.run_id), 0)`;
  await tx.run(tx.k.updateTable("runs").set({ expired_seq: last }).where("run_id", "in", ids));
  await tx.run(tx.k.deleteFrom("run_events").where("run_id", "in", ids));
  return ids.length;
}

/** Deletes stateless runs that ended before the given age; their threads went with their end. */
export const deleteEndedTemporaryRuns = (tx: Tx, older_than_ms: number, limit: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("runs")
      .where("seq", "in", (e) =>
        e.selectFrom("runs").select("seq").where(endedBefore(older_than_ms)).where("temporary", "=", 1).limit(limit),
      ),
  );
