/** Where a secret is kept. A sealed text opens nowhere else: moved to another row, column or workspace it is refused. */
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
