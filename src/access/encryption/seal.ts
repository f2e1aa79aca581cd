/** Additional authenticated data (AAD): a sealed text that was moved to another workspace, row or column cannot be opened. */
export interface AadContext {
  tenant_id: string;
  table: string;
  row_id: string;
  column: string;
}

/** Encrypts secrets before they are stored in the database. */
export interface Seal {
  seal(text: string, aad: AadContext): string;
  /** @throws SealError if the text was modified or moved, or if its key is not configured */
  open(sealed: string, aad: AadContext): string;
}

/** Thrown if a sealed text cannot be opened. The message is intended for the log: it names the row and the reason, never the text. */
export class SealError extends Error {
  override name = "SealError";
  readonly aad: AadContext;
  /** Key ID, if the sealed text contains a key ID. */
  readonly key_id: string | undefined;

  constructor(aad: AadContext, key_id: string | undefined, reason: string) {
    const { table, column, row_id, tenant_id } = aad;
    super(`Cannot decrypt ${table}.${column} of row ${row_id} in workspace ${tenant_id}: ${reason}.`);
    this.aad = aad;
    this.key_id = key_id;
  }
}

/** Used in a process that runs only the agent server and therefore has no encryption keys. Both functions throw. */
export const noEncryption: Seal = { seal: failWithoutKeys, open: failWithoutKeys };

function failWithoutKeys(): never {
  throw new Error("This process runs only the agent server (--only agents), which has no access to encryption keys.");
}
