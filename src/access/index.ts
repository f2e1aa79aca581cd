/** The parts of the access module, besides its contract, that other modules may import. */
export type { Access, Admission, Credentials } from "./access.ts";
export type { VaultContext } from "./context.ts";
export { type AadContext, type Seal, SealError } from "./encryption/seal.ts";
export { listWorkspaces } from "./storage/workspaces.ts";
export { isOperator } from "./workspaces.ts";
