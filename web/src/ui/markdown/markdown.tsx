import { lazy, memo, Suspense, useDeferredValue } from "react";
import { isCostly } from "./limits.ts";

/** Loaded when the first text must be parsed. */
const MarkdownDocument = lazy(() => import("./document.tsx"));

/**
 * Renders text that may contain Markdown. HTML is shown as text. The plain text is shown immediately and replaced with rendered Markdown at
 * low priority, so that a long conversation stays responsive.
 *
 * @param isWriting shows a cursor after the last word
 */
export const Markdown = memo(function Markdown({ text, isWriting = false }: { text: string; isWriting?: boolean }) {
  const current = useDeferredValue<string | undefined>(text, undefined);
  const plain = <PlainText text={current ?? text} isWriting={isWriting} />;
  if (current === undefined || isCostly(current)) return plain;
  return (
    <Suspense fallback={plain}>
      <MarkdownDocument text={current} isWriting={isWriting} />
    </Suspense>
  );
});

export const CURSOR_CLASSES = "ml-0.5 inline-block h-4 w-1.5 animate-pulse-slow bg-accent-text align-text-bottom";

export const PlainText = ({ text, isWriting }: { text: string; isWriting: boolean }) => (
  <p className="min-w-0 whitespace-pre-wrap text-body [overflow-wrap:anywhere]">
    {text}
    {isWriting && <span className={CURSOR_CLASSES} />}
  </p>
);
