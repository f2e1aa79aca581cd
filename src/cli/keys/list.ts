import { apiKeyOf } from "../../access/keys/api-keys.ts";
import { listApiKeys } from "../../access/storage/api-keys.ts";
import type { Flags } from "../../config/config.ts";
import { besideService } from "./beside.ts";

/** Prints the keys of all workspaces, the newest first: what is known of them, which is not the keys themselves. */
export async function listKeys(flags: Flags & { json?: boolean }): Promise<void> {
  const rows = await besideService(flags, (database) => listApiKeys(database.read, undefined));
  const keys = rows.map((row) => {
    const { id, tenant_id, user_id, name, ...more } = apiKeyOf(row);
    return { id, tenant_id, workspace: row.workspace, user: user_id, name, ...more };
  });
  if (flags.json) return console.log(JSON.stringify(keys));
  if (keys.length === 0) return console.log("There are no keys.");
  const lines = keys.map((key) => [
    key.id,
    key.revoked_at === null ? "valid" : "revoked",
    key.user,
    key.workspace ?? key.tenant_id,
    key.last_used_at?.slice(0, 16) ?? "never used",
    key.scopes.join(","),
    key.name,
  ]);
  console.log(table([["ID", "STATE", "USER", "WORKSPACE", "LAST USE (UTC)", "SCOPES", "NAME"], ...lines]));
}

/** Columns as wide as their widest cell. */
function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
