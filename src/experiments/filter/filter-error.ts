/** A filter expression that cannot be read. The message says where, what was expected there, and what was found. */
export class FilterError extends Error {
  /** Where in the expression: 0 is its first character, counted in UTF-16 units as JavaScript does. */
  readonly position: number;

  constructor(position: number, sentence: string) {
    super(`At ${position}: ${sentence}`);
    this.name = "FilterError";
    this.position = position;
  }
}

/** A piece of the expression as an error quotes it: in double quotes, on one line, not longer than needed. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
