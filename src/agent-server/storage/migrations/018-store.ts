import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * `namespace` has a dot after each label, so that a prefix is one range of the key. Both databases sort it by bytes. The
 * vectors of an item belong to its current value: each write replaces them with vectors that have new values of `vector_no`.
 */
export const store: Migration = {
  name: "018-store",
  statements({ name, types }) {
    const text = name === "postgres" ? 'text collate "C" not null' : "text not null";
    return [
      `create table store_items (
        tenant_id ${text}, namespace ${text}, key ${text}, value text not null, created_at ${types.bigint} not null,
        updated_at ${types.bigint} not null, ttl_ms ${types.bigint}, expires_at ${types.bigint},
        primary key (tenant_id, namespace, key)) ${types.clustered}`,
      "create index store_items_by_update on store_items (tenant_id, updated_at, namespace, key)",
      "create index store_items_expiring on store_items (expires_at) where expires_at is not null",
      `create table store_vectors (
        vector_no ${types.sequence}, tenant_id ${text}, namespace ${text}, key ${text}, vector ${types.bytes} not null)`,
      "create index store_vectors_of_item on store_vectors (tenant_id, namespace, key)",
      "create index store_vectors_of_workspace on store_vectors (tenant_id, vector_no)",
    ];
  },
};
