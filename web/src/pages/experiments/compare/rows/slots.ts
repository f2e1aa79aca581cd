import type { ComparedRow } from "../../../../../../src/experiments/contract/app-comparison.ts";
import { PAGE } from "../queries.ts";

/** A row position in the table. The row's data is loaded on demand. */
export interface Slot {
  index: number;
  row: ComparedRow | undefined;
}

type Page = readonly ComparedRow[] | undefined;

/**
 * Slots of all rows, which are filled page by page. A slot object stays the same until its page changes, so that only rows of new pages
 * re-render.
 */
export class Slots {
  #of: unknown;
  #pages: Page[] = [];
  #all: readonly Slot[] = [];

  get all(): readonly Slot[] {
    return this.#all;
  }

  /**
   * Adds loaded pages to the earlier pages and returns all slots.
   *
   * @param of object that identifies the filters and the order; a different object discards the earlier pages
   */
  filled(of: unknown, total: number, pages: ReadonlyMap<number, Page>): readonly Slot[] {
    const isOther = of !== this.#of || total !== this.#all.length;
    const isNew = (page: Page, at: number) => isOther || (page !== undefined && page !== this.#pages[at]);
    const changed = new Set([...pages].flatMap(([at, page]) => (isNew(page, at) ? at : [])));
    if (!isOther && changed.size === 0) return this.#all;
    const known = isOther ? [] : this.#pages;
    const before = isOther ? [] : this.#all;
    for (const at of changed) known[at] = pages.get(at);
    this.#all = Array.from({ length: total }, (_, index): Slot => {
      const at = Math.floor(index / PAGE);
      const previous = changed.has(at) ? undefined : before[index];
      return previous ?? { index, row: known[at]?.[index % PAGE] };
    });
    this.#of = of;
    this.#pages = known;
    return this.#all;
  }
}
