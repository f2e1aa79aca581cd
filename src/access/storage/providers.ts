import type { Insertable } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { ProviderRow } from "./schema.ts";

/** A new provider. Columns that are not set are null. */
export type NewProvider = Omit<Insertable<ProviderRow>, "created_at" | "updated_at">;

/** Returns undefined if the workspace already has a provider with this `provider_id`. */
export const insertProvider = (tx: Tx, provider: NewProvider): Promise<ProviderRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("oauth_providers")
      .values({ ...provider, created_at: nowMs, updated_at: nowMs })
      .onConflict((conflict) => conflict.columns(["tenant_id", "provider_id"]).doNothing())
      .returningAll(),
  );

const providerById = (tx: Tx, tenant_id: string, provider_id: string) =>
  tx.k
    .selectFrom("oauth_providers")
    .selectAll()
    .where("tenant_id", "=", tenant_id)
    .where("provider_id", "=", provider_id);

export const findProvider = (tx: Tx, tenant_id: string, provider_id: string): Promise<ProviderRow | undefined> =>
  tx.first(providerById(tx, tenant_id, provider_id));

/**
 * Locks the provider's row, so that no other transaction imports a token, sets a default token or deletes the provider. Lock order: flows,
 * provider, tokens.
 */
export const lockProvider = (tx: Tx, tenant_id: string, provider_id: string): Promise<ProviderRow | undefined> =>
  tx.first(tx.dialect.forUpdate(providerById(tx, tenant_id, provider_id)));

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

/** Maximum number of providers in a list. The API has no pagination for providers. */
export const MAX_PROVIDERS = 1000;

/** Returns undefined if the provider was deleted, even if a new provider with the same `provider_id` exists. */
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
