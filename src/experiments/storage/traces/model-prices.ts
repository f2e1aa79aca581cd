import { nowMs, type Tx } from "../../../platform/database/database.ts";
import type { ModelPriceRow } from "./trace-schema.ts";

/** The prices of a workspace, oldest first. */
export const listPrices = (tx: Tx, tenant_id: string): Promise<Pick<ModelPriceRow, "price_id" | "entry">[]> =>
  tx.all(
    tx.k
      .selectFrom("model_prices")
      .select(["price_id", "entry"])
      .where("tenant_id", "=", tenant_id)
      .orderBy("created_at")
      .orderBy("price_id"),
  );

/** @returns false when an equal price exists */
export async function insertPrice(tx: Tx, price: Omit<ModelPriceRow, "created_at">): Promise<boolean> {
  const row = { ...price, created_at: nowMs as unknown as number };
  const query = tx.k.insertInto("model_prices").values(row);
  return (await tx.run(query.onConflict((conflict) => conflict.doNothing()))) > 0;
}

/** Finds another price of the workspace with the same identity. */
export const findEqualPrice = (
  tx: Tx,
  { tenant_id, identity, price_id }: Omit<ModelPriceRow, "created_at">,
): Promise<{ price_id: string } | undefined> =>
  tx.first(
    tx.k
      .selectFrom("model_prices")
      .select("price_id")
      .where("tenant_id", "=", tenant_id)
      .where("identity", "=", identity)
      .where("price_id", "!=", price_id),
  );

export const updatePrice = (
  tx: Tx,
  { tenant_id, price_id, entry, identity }: Omit<ModelPriceRow, "created_at">,
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("model_prices")
      .set({ entry, identity })
      .where("tenant_id", "=", tenant_id)
      .where("price_id", "=", price_id),
  );

export const deletePrice = (tx: Tx, tenant_id: string, price_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("model_prices").where("tenant_id", "=", tenant_id).where("price_id", "=", price_id));
