/**
 * Where a secret is kept: table and column by their names, the row by its primary key (as SEALED_COLUMNS of access/storage/
 * lists them). A sealed text opens nowhere else: moved to another row, column or workspace it is refused.
 */
export interface Place {
  tenant_id: string;
  table: string;
  row_id: string;
  column: string;
}

/** Encrypts what must not lie in the database in the clear. */
export interface Seal {
  seal(text: string, place: Place): string;
  /** @throws SealError when the text was changed, moved, or sealed with a key that is not in the ring */
  open(sealed: string, place: Place): string;
}

/** A sealed text cannot be opened. It says where and why, for the log; callers see a 500 that says nothing. Never the text. */
export class SealError extends Error {
  readonly place: Place;
  /** Undefined when the text does not name one. */
  readonly key_id: string | undefined;

  constructor(place: Place, key_id: string | undefined, reason: string) {
    const { table, column, row_id, tenant_id } = place;
    super(`${table}.${column} of ${row_id} in the workspace ${tenant_id} cannot be opened: ${reason}.`);
    this.name = "SealError";
    this.place = place;
    this.key_id = key_id;
  }
}
