import type { ReactNode } from "react";
import { useSyncExternalStore } from "react";

/** A named scrollable region that can be focused with the keyboard (WCAG 2.1.1). */
export function ScrollRegion({
  label,
  className,
  children,
}: {
  label: string;
  className: string;
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section aria-label={label} tabIndex={0} className={className}>
      {children}
    </section>
  );
}

export const DetailSection = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="min-w-0">
    <h3 className="mb-1 font-medium text-table text-text-2">{title}</h3>
    {children}
  </section>
);

/** Joins class names and skips falsy values. */
export const classes = (...names: (string | false | null | undefined)[]): string => names.filter(Boolean).join(" ");

/** Media query for narrow screens, where the sidebar is at the bottom and tables are shown as cards. */
export const isNarrow = "(max-width: 639px)";

export const useMedia = (query: string): boolean =>
  useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
  );
