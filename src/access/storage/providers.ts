import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { ProviderRow } from "./schema.ts";

export type NewProvider = Omit<ProviderRow, "created_at" | "updated_at">;

/** Undefined when the workspace has a provider of that name. */
export const insertProvider = (tx: Tx, provider: NewProvider): Promise<ProviderRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("oauth_providers")
      .values({ ...provider, created_at: nowMs, updated_at: nowMs })
      .onConflict((conflict) => conflict.columns(["tenant_id", "provider_id"]).doNothing())
      .returningAll(),
  );

export const findProvider = (tx: Tx, tenant_id: string, provider_id: string): Promise<ProviderRow | undefined> =>
  tx.first(
    tx.k
      .selectFrom("oauth_providers")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .where("provider_id", "=", provider_id),
  );

/**
 * The provider, held until the transaction ends: so one after the other adds tokens to it, and none is added while it is deleted.
 * Flows are taken before it, tokens after it.
 */
export const lockProvider = (tx: Tx, tenant_id: string, provider_id: string): Promise<ProviderRow | undefined> =>
  tx.first(
    tx.dialect.forUpdate(
      tx.k
        .selectFrom("oauth_providers")
        .selectAll()
        .where("tenant_id", "=", tenant_id)
        .where("provider_id", "=", provider_id),
    ),
  );

export const listProviders = (tx: Tx, tenant_id: string): Promise<ProviderRow[]> =>
  tx.all(
    tx.k
      .selectFrom("oauth_providers")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .orderBy("created_at")
      .orderBy("id")
      .limit(MAX_PROVIDERS),
  );

/** Of a workspace, in one list: the API has no pages for them. */
export const MAX_PROVIDERS = 1000;

/** Undefined when it is gone, also when there is another of its name by now. */
export const updateProvider = (
  tx: Tx,
  { tenant_id, id }: Pick<ProviderRow, "tenant_id" | "id">,
  changes: Partial<NewProvider>,
): Promise<ProviderRow | undefined> =>
  tx.first(
    tx.k
      .updateTable("oauth_providers")
      .set({ ...changes, updated_at: nowMs })
      .where("tenant_id", "=", tenant_id)
      .where("id", "=", id)
      .returningAll(),
  );

export const deleteProvider = (tx: Tx, tenant_id: string, provider_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("oauth_providers").where("tenant_id", "=", tenant_id).where("provider_id", "=", provider_id));
