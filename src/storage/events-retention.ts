import { sql } from "kysely";
import type { Tx } from "./database.ts";

const endedBefore = (older_than_ms: number) =>
  sql<boolean>`ended_at is not null and ended_at < now_ms() - ${older_than_ms}`;

/** Deletes the events of runs that ended before the given age, of so many runs at a time. Returns how many rows went. */
export const deleteExpiredEvents = (tx: Tx, older_than_ms: number, limit: number): Promise<number> =>
  tx.run(
    tx.k.deleteFrom("run_events").where("run_id", "in", (e) =>
      e
        .selectFrom("runs")
        .select("run_id")
        .where(endedBefore(older_than_ms))
        .where((r) =>
          r.exists(r.selectFrom("run_events as v").select("v.seq").whereRef("v.run_id", "=", "runs.run_id")),
        )
        .limit(limit),
    ),
  );

/** Deletes stateless runs that ended before the given age; their threads went with their end. */
export const deleteEndedTemporaryRuns = (tx: Tx, older_than_ms: number, limit: number): Promise<number> =>
  tx.run(
    tx.k
      .deleteFrom("runs")
      .where("seq", "in", (e) =>
        e.selectFrom("runs").select("seq").where(endedBefore(older_than_ms)).where("temporary", "=", 1).limit(limit),
      ),
  );
