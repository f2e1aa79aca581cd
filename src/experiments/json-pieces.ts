/** A piece has at least this many characters: each costs a message between threads. */
const PIECE_CHARS = 64 * 1024;

/**
 * A list as JSON text, written while it is sent: a page of 3 MB in one text took the lane, the serving thread and the client one
 * after the other, and a single character beyond Latin-1 made V8 hold all of it in two bytes a character.
 */
export class JsonPieces<Item> implements Iterable<string> {
  readonly #count: number;
  readonly #textOf: (index: number) => string;
  /** Of what it is a list. */
  declare readonly item: Item;

  /** @param textOf the JSON of an item; it is asked for each once, when its turn has come */
  constructor(count: number, textOf: (index: number) => string) {
    this.#count = count;
    this.#textOf = textOf;
  }

  *[Symbol.iterator](): Generator<string> {
    let piece = "[";
    for (let index = 0; index < this.#count; index++) {
      piece += (index === 0 ? "" : ",") + this.#textOf(index);
      if (piece.length < PIECE_CHARS) continue;
      yield piece;
      piece = "";
    }
    yield `${piece}]`;
  }
}
