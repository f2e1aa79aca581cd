import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { Schema } from "../../platform/database/schema.ts";

/**
 * True if this rollout is active, or if none is. The statements that claim runs contain the condition, so an
 * instance claims no run after the commit that activates another rollout.
 */
export const isActiveRollout = (e: ExpressionBuilder<Schema, "runs">, rollout: number): Expression<SqlBool> =>
  e.not(e.exists(e.selectFrom("active_rollout as a").select("a.id").where("a.rollout", "<>", rollout)));

/** Whether a rollout may execute runs: it is active, or none is. */
export const mayClaimAsRollout = async (tx: Tx, rollout: number): Promise<boolean> =>
  (await tx.first(tx.k.selectFrom("active_rollout").select("id").where("rollout", "<>", rollout))) === undefined;

/** Returns 0 and writes nothing if this rollout or a newer one is active. */
export const activateRolloutIfNewer = (tx: Tx, rollout: number): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("active_rollout")
      .values({ id: 1, rollout, since: nowMs })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet({ rollout, since: nowMs }).where("active_rollout.rollout", "<", rollout),
      ),
  );
