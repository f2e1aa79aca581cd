import type { ReactNode } from "react";

/** What scrolls within itself: it has a name, and the keyboard can reach it, as WCAG 2.1.1 wants. */
export function Scroller({ label, className, children }: { label: string; className: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls takes the focus to be scrolled by keys
    <section aria-label={label} tabIndex={0} className={className}>
      {children}
    </section>
  );
}
