/** What other modules use of access, besides its contract. */
export type { Access, Admission } from "./access.ts";
export type { VaultContext } from "./context.ts";
export type { Place, Seal } from "./encryption/seal.ts";
export { listWorkspaces } from "./storage/workspaces.ts";
