/** The minimum size of a piece: each piece costs a message between threads. */
const PIECE_CHARS = 64 * 1024;

/**
 * A JSON array that is serialized while it is sent. With one string of 3 MB, the worker thread, the main thread and the client would work
 * one after the other, and one character beyond Latin-1 would make V8 store the whole text with two bytes per character.
 */
export class JsonPieces<Item> implements Iterable<string> {
  readonly #count: number;
  readonly #itemJson: (index: number) => string;
  /** The type of an item after parsing. */
  declare readonly item: Item;

  /** @param itemJson returns the JSON of an item; called once per item, in order */
  constructor(count: number, itemJson: (index: number) => string) {
    this.#count = count;
    this.#itemJson = itemJson;
  }

  *[Symbol.iterator](): Generator<string> {
    let piece = "[";
    for (let index = 0; index < this.#count; index++) {
      piece += (index === 0 ? "" : ",") + this.#itemJson(index);
      if (piece.length < PIECE_CHARS) continue;
      yield piece;
      piece = "";
    }
    yield `${piece}]`;
  }
}
