import type { ReactNode } from "react";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";

/** Number of items of each list on the home page. */
export const MAX_LISTED = 5;

/** A section of the home page with the first items of a list. `more` links to the page with the complete list. */
export function HomeList<Item>({
  title,
  more,
  items,
  error,
  retry,
  empty,
  keyOf,
  children,
}: {
  title: string;
  more?: ReactNode;
  items: readonly Item[] | undefined;
  error: Error | null;
  retry(): unknown;
  /** Describes what the list will show. */
  empty: ReactNode;
  keyOf(item: Item): string;
  children(item: Item): ReactNode;
}) {
  return (
    <section aria-label={title} className="min-w-0">
      <div className="mb-2 flex items-baseline justify-between gap-3">
        <h2 className="font-semibold text-body">{title}</h2>
        {more}
      </div>
      {error && !items ? (
        <ErrorState error={error} retry={() => void retry()} />
      ) : !items ? (
        <SkeletonRows label={`Loading ${title.toLowerCase()}`} rows={2} />
      ) : items.length === 0 ? (
        <p className="rounded-lg border border-line border-dashed px-3 py-2 text-table text-text-2">{empty}</p>
      ) : (
        <ul className="divide-y divide-line rounded-lg border border-line">
          {items.slice(0, MAX_LISTED).map((item) => (
            <li key={keyOf(item)} className="flex min-h-9 items-center gap-3 px-3 py-1.5 text-table">
              {children(item)}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export const MORE_LINK = "rounded text-accent-text text-table hover:underline";
export const ITEM_LINK = "min-w-0 flex-1 truncate font-medium hover:underline";
export const ITEM_TIME = "w-24 shrink-0 text-right text-text-3";
