import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { Seal } from "../../src/access/encryption/seal.ts";
import { SEALED_COLUMNS, type SealedColumn } from "../../src/access/storage/encryption-keys.ts";
import { insertProvider } from "../../src/access/storage/providers.ts";
import { insertToken } from "../../src/access/storage/tokens.ts";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import type { Database } from "../../src/platform/database/database.ts";

/** What the sealed texts of a row say: each its own row's id, so that a mix-up shows. */
const secretOf = (row_id: string): string => `canary-${row_id}`;

const placeOf = ({ table, column }: Pick<SealedColumn, "table" | "column">, row_id: string) => ({
  tenant_id: DEFAULT_TENANT,
  table,
  row_id,
  column,
});

/** A row of each table that has sealed texts. */
export async function insertSealedRows(database: Database, seal: Seal, rows: number): Promise<void> {
  await database.write(async (tx) => {
    for (let i = 0; i < rows; i++) await insertOne(tx, seal);
  });
}

type Tx = Parameters<Parameters<Database["write"]>[0]>[0];

async function insertOne(tx: Tx, seal: Seal): Promise<void> {
  const id = randomUUID();
  const sealed = (table: SealedColumn["table"], column: SealedColumn["column"]) =>
    seal.seal(secretOf(id), placeOf({ table, column } as SealedColumn, id));
  await insertProvider(tx, {
    id,
    tenant_id: DEFAULT_TENANT,
    provider_id: id,
    name: "p",
    client_id: "c",
    client_secret: sealed("oauth_providers", "client_secret"),
    auth_url: "https://example.com/a",
    token_url: "https://example.com/t",
    revocation_url: null,
    issuer: null,
    resource: null,
    uses_pkce: 1,
    code_challenge_method: "S256",
    provider_type: null,
    mcp_server_url: null,
    token_endpoint_auth_method: "client_secret_post",
    is_dynamic_client: 0,
    authorization_params: "{}",
    allowed_redirect_uris: "[]",
    default_redirect_uri: null,
  });
  await insertToken(tx, {
    token_id: id,
    tenant_id: DEFAULT_TENANT,
    provider_id: id,
    user_id: "u",
    agent_id: null,
    provider_account_label: null,
    scopes: "[]",
    is_default: 0,
    secret: sealed("oauth_tokens", "secret"),
    metadata: "{}",
    expires_at: null,
  });
  await tx.run(
    tx.k.insertInto("oauth_flows").values({
      auth_id: id,
      tenant_id: DEFAULT_TENANT,
      provider_id: id,
      user_id: "u",
      started_by: "u",
      agent_id: null,
      token_id: null,
      scopes: "[]",
      redirect_uri: "https://example.com/r",
      is_default: 1,
      verifier: sealed("oauth_flows", "verifier"),
      state_digest: "d",
      expires_at: 0,
      claimed_at: null,
      outcome: null,
      created_at: 0,
    }),
  );
}

/** Opens every sealed text there is; fails where one does not say what it should. */
export async function openAll(database: Database, seal: Seal): Promise<{ texts: number; key_ids: string[] }> {
  const key_ids = new Set<string>();
  let texts = 0;
  for (const { table, primary_key, column } of SEALED_COLUMNS) {
    const rows = await database.read.all(
      sql<{ row_id: string; sealed: string }>`
        select ${sql.ref(primary_key)} as row_id, ${sql.ref(column)} as sealed from ${sql.table(table)}`.compile(
        database.read.k,
      ),
    );
    for (const { row_id, sealed } of rows) {
      const text = seal.open(sealed, placeOf({ table, column } as SealedColumn, row_id));
      if (text !== secretOf(row_id)) throw new Error(`${table} ${row_id} says ${text}.`);
      key_ids.add(sealed.split(".")[1] as string);
      texts++;
    }
  }
  return { texts, key_ids: [...key_ids].sort() };
}
