import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { Schema } from "../../platform/database/schema.ts";

/**
 * True for the roll-out that executes runs, and for all as long as none has been named. Part of the statements that take runs,
 * so that none is taken after the commit that has named another.
 *
 * @param rollout a value or a parameter of {@link prepared}
 */
export const isClaimant = (e: ExpressionBuilder<Schema, "runs">, rollout: number): Expression<SqlBool> =>
  e.not(e.exists(e.selectFrom("claimant as c").select("c.id").where("c.rollout", "<>", rollout)));

/** Whether a roll-out executes runs, or none has been named that does. */
export const mayClaimAs = async (tx: Tx, rollout: number): Promise<boolean> =>
  (await tx.first(tx.k.selectFrom("claimant").select("id").where("rollout", "<>", rollout))) === undefined;

/** Names the roll-out that executes runs from now on. 0 when it is that already, or a newer one is: then nothing was written. */
export const makeClaimantIfNewer = (tx: Tx, rollout: number): Promise<number> =>
  tx.run(
    tx.k
      .insertInto("claimant")
      .values({ id: 1, rollout, since: nowMs })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet({ rollout, since: nowMs }).where("claimant.rollout", "<", rollout),
      ),
  );
