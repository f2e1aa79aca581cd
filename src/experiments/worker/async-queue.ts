/** Pieces on their way from one who sends them to one who reads them. */
export class Arriving implements AsyncIterable<string> {
  readonly #pieces: string[] = [];
  #isOver = false;
  #error: unknown;
  #news = Promise.withResolvers<void>();

  push(piece: string): void {
    this.#pieces.push(piece);
    this.#news.resolve();
  }

  /** With an error when not all has come. */
  end(error?: unknown): void {
    this.#isOver = true;
    this.#error = error;
    this.#news.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) yield piece;
      else if (this.#error !== undefined) throw this.#error;
      else if (this.#isOver) return;
      else {
        await this.#news.promise;
        this.#news = Promise.withResolvers();
      }
    }
  }
}
