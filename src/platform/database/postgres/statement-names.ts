/** Maximum number of statements that each connection keeps. */
const MAX_NAMES = 256;
/** A statement is named at this use, because some texts depend on the number of rows. */
const NAMED_AT = 5;
/** Maximum number of statements that are counted before they have a name. */
const MAX_COUNTED = 1_000;

/**
 * Names statements whose text is fixed. Each connection parses a named statement once, and Postgres reuses its plan, which saves half of
 * the database's CPU time per run.
 */
export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #uses = new Map<string, number>();
  readonly #max: number;
  #last = 0;

  /** @param max 0 for connections that keep no statements */
  constructor({ max = MAX_NAMES }: { max?: number } = {}) {
    this.#max = max;
  }

  /** Returns undefined if the statement is not used often, or if there are too many. */
  nameOf(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined || this.#names.size === this.#max) return known;
    const uses = (this.#uses.get(text) ?? 0) + 1;
    if (uses < NAMED_AT) {
      if (this.#uses.size === MAX_COUNTED) this.#uses.clear();
      this.#uses.set(text, uses);
      return undefined;
    }
    this.#uses.delete(text);
    const name = `threadmill_${++this.#last}`;
    this.#names.set(text, name);
    return name;
  }

  /** Gives all statements new names, so that they are parsed again. */
  clear(): void {
    this.#names.clear();
  }
}

/** Whether a newer process has added columns since the statement was parsed. Parsed again, the statement succeeds. */
export const isOutdated = (error: unknown): boolean =>
  (error as { code?: string }).code === "0A000" && /cached plan/.test((error as Error).message);
