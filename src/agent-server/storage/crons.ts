import { sql } from "kysely";
import type { MetadataFilter } from "../../platform/contract/caller.ts";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { CronFilter, CronSearch } from "../contract/crons.ts";
import type { CronRow } from "./schema.ts";
import { accessible, matching } from "./search.ts";

export type NewCron = Omit<CronRow, "created_at" | "updated_at">;

export const insertCron = async (tx: Tx, cron: NewCron): Promise<CronRow> =>
  (await tx.first(
    tx.k
      .insertInto("crons")
      .values({ ...cron, created_at: nowMs, updated_at: nowMs })
      .returningAll(),
  )) as CronRow;

type Find = (tx: Tx, tenant_id: string, cron_id: string, filter?: MetadataFilter) => Promise<CronRow | undefined>;

const cronQuery = (tx: Tx, ...[tenant_id, cron_id, filter]: [string, string, MetadataFilter | undefined]) =>
  tx.k
    .selectFrom("crons")
    .selectAll()
    .where("cron_id", "=", cron_id)
    .where("tenant_id", "=", tenant_id)
    .$call(accessible(filter));

/** Returns a cron of the tenant if it meets the filter. */
export const findCron: Find = (tx, tenant_id, cron_id, filter) => tx.first(cronQuery(tx, tenant_id, cron_id, filter));

/** Like {@link findCron}, but also locks the row until the transaction ends. */
export const lockCron: Find = (tx, tenant_id, cron_id, filter) =>
  tx.first(tx.dialect.forUpdate(cronQuery(tx, tenant_id, cron_id, filter)));

export async function updateCron(tx: Tx, { cron_id, ...changes }: Omit<NewCron, "tenant_id">): Promise<CronRow> {
  const query = tx.k.updateTable("crons").set({ ...changes, updated_at: nowMs });
  return (await tx.first(query.where("cron_id", "=", cron_id).returningAll())) as CronRow;
}

/** Moves a cron to its next tick. Returns 0 if its next tick is not `due` any more: another process has handled it. */
export const advanceCron = (tx: Tx, { cron_id, due }: { cron_id: string; due: number }, next_at: number | null) =>
  tx.run(tx.k.updateTable("crons").set({ next_at }).where("cron_id", "=", cron_id).where("next_at", "=", due));

export const deleteCron = (tx: Tx, tenant_id: string, cron_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("crons").where("cron_id", "=", cron_id).where("tenant_id", "=", tenant_id));

type Paging = Pick<CronSearch, "sort_by" | "sort_order" | "limit" | "offset">;

/** Postgres and SQLite sort null differently, so it is replaced by the latest time, or by an empty thread id. */
const SORTED_BY = {
  next_run_date: sql<number>`coalesce(next_at, ${Number.MAX_SAFE_INTEGER})`,
  end_time: sql<number>`coalesce(end_at, ${Number.MAX_SAFE_INTEGER})`,
  thread_id: sql<string>`coalesce(thread_id, '')`,
};

type AccessibleCrons = CronFilter & { access: MetadataFilter | undefined };

export function searchCrons(tx: Tx, tenant_id: string, filter: AccessibleCrons, paging: Paging): Promise<CronRow[]> {
  const { sort_by, sort_order, limit, offset } = paging;
  const key = sort_by in SORTED_BY ? SORTED_BY[sort_by as keyof typeof SORTED_BY] : sql.ref(sort_by);
  const sorted = cronsMatching(tx, tenant_id, filter).orderBy(key, sort_order).orderBy("cron_id", sort_order);
  return tx.all(sorted.selectAll().limit(limit).offset(offset));
}

export async function countCrons(tx: Tx, tenant_id: string, filter: AccessibleCrons): Promise<number> {
  const row = await tx.first(cronsMatching(tx, tenant_id, filter).select((s) => s.fn.countAll<number>().as("count")));
  return Number(row?.count ?? 0);
}

function cronsMatching(tx: Tx, tenant_id: string, filter: AccessibleCrons) {
  const { assistant_id, thread_id, enabled, metadata, access } = filter;
  let query = tx.k
    .selectFrom("crons")
    .where("tenant_id", "=", tenant_id)
    .$call(matching({ metadata }))
    .$call(accessible(access));
  if (assistant_id !== undefined) query = query.where("assistant_id", "=", assistant_id);
  if (thread_id !== undefined) query = query.where("thread_id", "=", thread_id);
  if (enabled !== undefined) query = query.where("enabled", "=", enabled ? 1 : 0);
  return query;
}

/** A cron whose next tick is due. */
export type DueCron = CronRow & { next_at: number };

/** Disables a cron whose next tick is `due`. */
export const disableDueCron = (tx: Tx, { cron_id, due }: { cron_id: string; due: number }) =>
  tx.run(
    tx.k
      .updateTable("crons")
      .set({ enabled: 0, next_at: null, updated_at: nowMs })
      .where("cron_id", "=", cron_id)
      .where("next_at", "=", due),
  );

/** Returns the crons that are due, in the order of their ticks. */
export const listDueCrons = (tx: Tx, limit: number): Promise<DueCron[]> =>
  tx.all(
    tx.k
      .selectFrom("crons")
      .selectAll()
      .where("next_at", "<=", nowMs)
      .$narrowType<{ next_at: number }>()
      // Processes that handle the same crons lock them in the same order.
      .orderBy("next_at")
      .orderBy("cron_id")
      .limit(limit),
  );

/** Returns the time of the earliest next tick of all crons. */
export const findNextTick = (tx: Tx): Promise<{ next_at: number | null } | undefined> =>
  tx.first(tx.k.selectFrom("crons").select((s) => s.fn.min("next_at").as("next_at")));
