import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { RunStatus } from "../../src/agent-server/contract/records.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { insertMany } from "../../src/platform/database/insert-many.ts";
import type { TestDatabase } from "./databases.ts";
import { openOn } from "./storage.ts";

const OF_A_THREAD = ["threads", "runs", "checkpoints", "checkpoint_values", "checkpoint_writes"];

/** Every row that belongs to a thread, by table, read from the database beside the service; the order says nothing. */
export async function rowsOfThread(at: TestDatabase, thread_id: string): Promise<Record<string, string[]>> {
  const database = openOn(at);
  try {
    const rows: Record<string, string[]> = {};
    const read = async (table: string, where: ReturnType<typeof sql>) => {
      const found = await database.read.all(
        sql`select * from ${sql.table(table)} where ${where}`.compile(database.read.k),
      );
      rows[table] = found.map((row) => JSON.stringify(row)).sort();
    };
    for (const table of OF_A_THREAD) await read(table, sql`thread_id = ${thread_id}`);
    await read("run_events", sql`run_id in (select run_id from runs where thread_id = ${thread_id})`);
    return rows;
  } finally {
    await database.close();
  }
}

/** How many rows of any table still name a run. */
export async function rowsOfRun(at: TestDatabase, run_id: string): Promise<number> {
  const database = openOn(at);
  try {
    let count = 0;
    for (const table of ["runs", "run_events", "checkpoints", "checkpoint_values", "checkpoint_writes"]) {
      const query = sql`select run_id from ${sql.table(table)} where run_id = ${run_id}`.compile(database.read.k);
      count += (await database.read.all(query)).length;
    }
    return count;
  } finally {
    await database.close();
  }
}

export interface EndedRun {
  tenant_id: string;
  thread_id: string;
  assistant_id: string;
  status: RunStatus;
  created_at: number;
  /** Default: `created_at`. */
  start_at?: number;
  started_at: number | null;
  ended_at: number;
}

/** Adds runs that have ended, with the given times. No checkpoints or events are added. */
export const insertEndedRuns = (database: Database, runs: readonly EndedRun[]): Promise<void> =>
  database.write((tx) =>
    insertMany(
      tx,
      "runs",
      runs.map((run) => ({
        run_id: randomUUID(),
        user_id: "user",
        graph_id: "chain",
        metadata: "{}",
        kwargs: "{}",
        multitask_strategy: "enqueue" as const,
        start_at: run.created_at,
        run_after: run.start_at ?? run.created_at,
        epoch: 1,
        attempt: 1,
        crashes: 0,
        temporary: 0,
        updated_at: run.ended_at,
        ...run,
      })),
    ),
  );
