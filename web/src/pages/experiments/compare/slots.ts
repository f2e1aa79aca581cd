import type { ComparedRow } from "../../../../../src/experiments/contract/app-comparison.ts";
import { PAGE } from "./queries.ts";

/** A place in the table; its row comes when it is scrolled to. */
export interface Slot {
  index: number;
  row: ComparedRow | undefined;
}

type Page = readonly ComparedRow[] | undefined;

/**
 * The places of all rows, filled page by page. A place is the same object as before as long as its page is: of a hundred pages
 * only the rows of those are drawn again that have come.
 */
export class Slots {
  #of: unknown;
  #pages: Page[] = [];
  #all: readonly Slot[] = [];

  /** As they were filled last. */
  get all(): readonly Slot[] {
    return this.#all;
  }

  /**
   * Fills in pages that have come. Those of before stay.
   *
   * @param of what narrows and sorts the rows: of another there is nothing yet
   */
  filled(of: unknown, total: number, pages: ReadonlyMap<number, Page>): readonly Slot[] {
    const isOther = of !== this.#of || total !== this.#all.length;
    const isNew = (page: Page, at: number) => isOther || (page !== undefined && page !== this.#pages[at]);
    const come = new Set([...pages].flatMap(([at, page]) => (isNew(page, at) ? at : [])));
    if (!isOther && come.size === 0) return this.#all;
    const known = isOther ? [] : this.#pages;
    const before = isOther ? [] : this.#all;
    for (const at of come) known[at] = pages.get(at);
    this.#all = Array.from({ length: total }, (_, index): Slot => {
      const at = Math.floor(index / PAGE);
      const kept = come.has(at) ? undefined : before[index];
      return kept ?? { index, row: known[at]?.[index % PAGE] };
    });
    this.#of = of;
    this.#pages = known;
    return this.#all;
  }
}
