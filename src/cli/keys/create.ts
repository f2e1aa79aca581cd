import { makeApiKey } from "../../access/keys/api-keys.ts";
import { ensureWorkspace } from "../../access/workspaces.ts";
import type { Flags } from "../../config/config.ts";
import type { Scope } from "../../platform/contract/caller.ts";
import { besideService } from "./beside.ts";

export interface CreateFlags extends Flags {
  name: string;
  user: string;
  workspace: string;
  scope?: Scope[];
  json?: boolean;
}

/** Makes a key, and its workspace when there is none of that name or id, in one transaction. */
export async function createKey(flags: CreateFlags): Promise<void> {
  const { name, user, scope } = flags;
  const made = await besideService(flags, (database) =>
    database.write(async (tx) => {
      const workspace = await ensureWorkspace(tx, flags.workspace);
      const { tenant_id } = workspace;
      const { id, key, scopes } = await makeApiKey(tx, { tenant_id, user_id: user, name, scopes: scope });
      return { id, key, tenant_id, workspace: workspace.name, user, name, scopes };
    }),
  );
  console.log(flags.json ? JSON.stringify(made) : sentence(made));
}

const sentence = ({
  id,
  key,
  user,
  workspace,
  scopes,
}: Record<"id" | "key" | "user" | "workspace", string> & { scopes: string[] }) =>
  `The key ${id} of ${user} in the workspace "${workspace}", for ${scopes.join(", ")}:

  ${key}

It is kept nowhere and shown this once. Send it as X-Api-Key, or as Authorization: Bearer.`;
