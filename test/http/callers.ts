import { randomUUID } from "node:crypto";
import type { Scope } from "../../src/platform/contract/caller.ts";
import type { DatabaseName } from "../support/databases.ts";
import { Scenario, type Wire } from "./scenario.ts";

/** The key of the environment in {@link closedService}: the user `admin`, who may do everything. */
const ROOT = "root-0123456789abcdef0123456789abcdef";
export const ADMIN = { "X-Api-Key": ROOT };

/** A service that asks for keys. */
export const closedService = (
  database: DatabaseName,
  env: Record<string, string> = {},
  options: Parameters<typeof Scenario.start>[2] = {},
): Promise<Scenario> => Scenario.start(database, { API_KEYS: ROOT, ...env }, options);

/** A new workspace; answers its id. */
export const newWorkspace = async (api: Scenario): Promise<string> =>
  (await api.call("POST", "/admin/workspaces", { name: `workspace ${randomUUID()}` }, ADMIN)).tenant_id;

/** What somebody needs who does everything but administer. */
const WORK: Scope[] = ["agents", "experiments", "tokens", "providers", "deployments"];

/** A new key, as the administration answers it. */
export const newKey = (
  api: Scenario,
  wishes: { tenant_id?: string; user_id?: string; scopes?: Scope[] } = {},
): Promise<Wire> => api.call("POST", "/admin/keys", { name: "test", scopes: WORK, ...wishes }, ADMIN);

/** Headers with a new key. */
export const newCaller = async (...wishes: Parameters<typeof newKey>): Promise<{ "X-Api-Key": string }> => ({
  "X-Api-Key": (await newKey(...wishes)).key,
});
