/**
 * Additional authenticated data (AAD) of a sealed text: its workspace, table, primary key and column. SEALED_COLUMNS in
 * access/storage/ lists the columns. A sealed text that was moved to another row, column or workspace does not open.
 */
export interface AadContext {
  tenant_id: string;
  table: string;
  row_id: string;
  column: string;
}

/** Encrypts secrets before they are stored in the database. */
export interface Seal {
  seal(text: string, aad: AadContext): string;
  /** @throws SealError when the text was modified or moved, or when its key is not in the key ring */
  open(sealed: string, aad: AadContext): string;
}

/**
 * A sealed text cannot be opened. The message is for the log: it names the row and the reason, never the text. The API answers with
 * a generic 500.
 */
export class SealError extends Error {
  readonly aad: AadContext;
  /** Undefined when the text names no key. */
  readonly key_id: string | undefined;

  constructor(aad: AadContext, key_id: string | undefined, reason: string) {
    const { table, column, row_id, tenant_id } = aad;
    super(`Cannot decrypt ${table}.${column} of row ${row_id} in workspace ${tenant_id}: ${reason}.`);
    this.name = "SealError";
    this.aad = aad;
    this.key_id = key_id;
  }
}

/** For a process that serves only the agent server. It has no encryption keys and reads no secrets. */
export const noEncryption: Seal = { seal: failWithoutKeys, open: failWithoutKeys };

function failWithoutKeys(): never {
  throw new Error("This process serves only the agent server and has no encryption keys.");
}
