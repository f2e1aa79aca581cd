/** A text as a change of another, the base: copies of parts of it, and what is new in between. */
export interface TextDelta {
  /**
   * Three numbers a copy, with spaces between: how many units of `added` come before it, where in the base it begins, and
   * how long it is. The rest of `added` comes at the end. All are UTF-16 units.
   */
  copies: string;
  /** What the base does not have. */
  added: string;
}

/** Parts that are shorter than this are not looked for in the middle of texts. */
const BLOCK = 32;

/**
 * What makes `text` of `base`. What both begin and end with is found first; in between every part of the base that is long
 * enough is found wherever it stands, as in rsync's algorithm: the base's blocks are looked up by a rolling hash, and matches
 * are grown to both sides. Takes about a millisecond for 100,000 units.
 */
export function deltaOf(base: string, text: string): TextDelta {
  const most = Math.min(base.length, text.length);
  let start = 0;
  while (start < most && base.charCodeAt(start) === text.charCodeAt(start)) start++;
  let [baseEnd, textEnd] = [base.length, text.length];
  while (baseEnd > start && textEnd > start && base.charCodeAt(baseEnd - 1) === text.charCodeAt(textEnd - 1)) {
    baseEnd--;
    textEnd--;
  }
  const delta = new DeltaWriter(text);
  delta.copy(0, 0, start);
  if (textEnd - start > 2 * BLOCK) copyBlocks(base, text, { start, end: textEnd }, delta);
  delta.copy(textEnd, baseEnd, text.length - textEnd);
  return delta.end();
}

export function applyDelta(base: string, { copies, added }: TextDelta): string {
  const numbers = copies === "" ? [] : copies.split(" ").map(Number);
  let text = "";
  let at = 0;
  for (let i = 0; i < numbers.length; i += 3) {
    const [count = 0, from = 0, length = 0] = numbers.slice(i, i + 3);
    text += added.slice(at, at + count) + base.slice(from, from + length);
    at += count;
  }
  return text + added.slice(at);
}

/** Gathers copies in the order of the text; what lies between them is added. */
class DeltaWriter {
  readonly #text: string;
  #done = 0;
  #copies = "";
  #added = "";

  constructor(text: string) {
    this.#text = text;
  }

  copy(at: number, from: number, length: number): void {
    let [begin, end] = [at, at + length];
    // What is added is stored as UTF-8, which has no halves of surrogate pairs.
    if (isLowSurrogate(this.#text.charCodeAt(begin))) begin++;
    if (isLowSurrogate(this.#text.charCodeAt(end))) end--;
    if (end <= begin) return;
    const added = this.#text.slice(this.#done, begin);
    this.#added += added;
    this.#copies += `${this.#copies && " "}${added.length} ${from + begin - at} ${end - begin}`;
    this.#done = end;
  }

  end(): TextDelta {
    return { copies: this.#copies, added: this.#added + this.#text.slice(this.#done) };
  }
}

/** Finds the base's blocks within a part of the text. */
function copyBlocks(
  base: string,
  text: string,
  { start, end }: { start: number; end: number },
  delta: DeltaWriter,
): void {
  const blocks = new BlockTable(base);
  let done = start;
  let at = start;
  let hash = 0;
  let isFresh = true;
  while (at + BLOCK <= end) {
    hash = isFresh ? hashAt(text, at) : roll(hash, text.charCodeAt(at - 1), text.charCodeAt(at + BLOCK - 1));
    isFresh = false;
    const from = blocks.find(hash, text, at);
    if (from === -1) {
      at++;
      continue;
    }
    let back = 0;
    while (at - back > done && from > back && text.charCodeAt(at - back - 1) === base.charCodeAt(from - back - 1))
      back++;
    let length = BLOCK;
    while (at + length < end && text.charCodeAt(at + length) === base.charCodeAt(from + length)) length++;
    delta.copy(at - back, from - back, length + back);
    at += length;
    done = at;
    isFresh = true;
  }
}

/** Where the blocks of a text begin, by their hash. */
class BlockTable {
  readonly #base: string;
  readonly #mask: number;
  /** Position + 1 of the first block with a hash, in the hash's slot; 0 for none. */
  readonly #slots: Int32Array;

  constructor(base: string) {
    this.#base = base;
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, (2 * base.length) / BLOCK)));
    this.#mask = size - 1;
    this.#slots = new Int32Array(size);
    for (let at = 0; at + BLOCK <= base.length; at += BLOCK) {
      const slot = this.#slotOf(hashAt(base, at));
      if (this.#slots[slot] === 0) this.#slots[slot] = at + 1;
    }
  }

  /** The position of the block that the text has at `at`; -1 when there is none. */
  find(hash: number, text: string, at: number): number {
    const from = (this.#slots[this.#slotOf(hash)] as number) - 1;
    if (from === -1) return -1;
    for (let i = 0; i < BLOCK; i++) if (text.charCodeAt(at + i) !== this.#base.charCodeAt(from + i)) return -1;
    return from;
  }

  #slotOf = (hash: number): number => (hash ^ (hash >>> 15)) & this.#mask;
}

/** A polynomial hash of BLOCK units, modulo 2^32. */
const FACTOR = 0x01000193;
const LAST_FACTOR = Array.from({ length: BLOCK }).reduce<number>((power) => Math.imul(power, FACTOR), 1);

function hashAt(text: string, at: number): number {
  let hash = 0;
  for (let i = 0; i < BLOCK; i++) hash = (Math.imul(hash, FACTOR) + text.charCodeAt(at + i)) | 0;
  return hash;
}

/** The hash of the block one further on. */
const roll = (hash: number, gone: number, come: number): number =>
  (Math.imul(hash, FACTOR) - Math.imul(gone, LAST_FACTOR) + come) | 0;

const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff;
