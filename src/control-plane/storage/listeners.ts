import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { ListenerRow } from "./schema.ts";

type NewListener = Omit<ListenerRow, "created_at" | "updated_at">;

/** Returns undefined if the workspace already has a listener with this compute_id. */
export const insertListener = (tx: Tx, listener: NewListener): Promise<ListenerRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("listeners")
      .values({ ...listener, created_at: nowMs, updated_at: nowMs })
      .onConflict((conflict) => conflict.columns(["tenant_id", "compute_id"]).doNothing())
      .returningAll(),
  );

/** Whether a listener exists in any workspace. */
export const hasListener = async (tx: Tx, listener_id: string): Promise<boolean> =>
  (await tx.first(tx.k.selectFrom("listeners").select("listener_id").where("listener_id", "=", listener_id))) !==
  undefined;

export const findListener = (tx: Tx, tenant_id: string, listener_id: string): Promise<ListenerRow | undefined> =>
  tx.first(
    tx.k.selectFrom("listeners").selectAll().where("tenant_id", "=", tenant_id).where("listener_id", "=", listener_id),
  );

/** Newest first. */
export const listListeners = (
  tx: Tx,
  { tenant_id, limit, offset }: { tenant_id: string; limit: number; offset: number },
): Promise<ListenerRow[]> =>
  tx.all(
    tx.k
      .selectFrom("listeners")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .orderBy("created_at", "desc")
      .orderBy("listener_id", "desc")
      .limit(limit)
      .offset(offset),
  );

export const updateListener = (
  tx: Tx,
  { tenant_id, listener_id }: Pick<ListenerRow, "tenant_id" | "listener_id">,
  changes: Partial<Pick<ListenerRow, "version" | "compute_config">>,
): Promise<ListenerRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("listeners")
      .set({ ...changes, updated_at: nowMs })
      .where("tenant_id", "=", tenant_id)
      .where("listener_id", "=", listener_id)
      .returningAll(),
  );

export const deleteListener = (tx: Tx, tenant_id: string, listener_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("listeners").where("tenant_id", "=", tenant_id).where("listener_id", "=", listener_id));
