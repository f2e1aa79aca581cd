import { sql } from "kysely";
import { nowMs, type Tx } from "../../../platform/database/database.ts";
import type { RunShareRow } from "./trace-schema.ts";

export const findShare = (tx: Tx, share_token: string): Promise<RunShareRow | undefined> =>
  tx.first(tx.k.selectFrom("run_shares").selectAll().where("share_token", "=", share_token));

export const findShareOfRun = (tx: Tx, tenant_id: string, run_id: string): Promise<RunShareRow | undefined> =>
  tx.first(tx.k.selectFrom("run_shares").selectAll().where("tenant_id", "=", tenant_id).where("run_id", "=", run_id));

/** @returns false when the token is taken, or the run has another token */
export async function insertShare(tx: Tx, share: Omit<RunShareRow, "created_at">): Promise<boolean> {
  const row = { ...share, created_at: nowMs as unknown as number };
  const query = tx.k.insertInto("run_shares").values(row);
  return (await tx.run(query.onConflict((conflict) => conflict.doNothing()))) > 0;
}

export const deleteShareOfRun = (tx: Tx, tenant_id: string, run_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("run_shares").where("tenant_id", "=", tenant_id).where("run_id", "=", run_id));

/** Deletes the shares of all runs of a session. Looks up the run of each share, because there are few shares. */
export async function deleteSharesOfSession(tx: Tx, experiment_no: number): Promise<void> {
  for (const table of ["trace_runs", "experiment_runs"] as const)
    await tx.run(
      sql`delete from run_shares where exists (select 1 from ${sql.table(table)} as r
          where r.tenant_id = run_shares.tenant_id and r.run_id = run_shares.run_id
          and r.experiment_no = ${experiment_no})`.compile(tx.k),
    );
}
