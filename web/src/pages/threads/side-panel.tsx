import type { ReactNode } from "react";
import { Sheet } from "../../ui/dialog.tsx";
import { isNarrow, useMedia } from "../../ui/media.ts";
import { Segmented } from "../../ui/segmented.tsx";
import type { Side } from "./page.ts";

const SIDES: readonly { value: Side; label: string }[] = [
  { value: "history", label: "History" },
  { value: "runs", label: "Runs" },
  { value: "graph", label: "Graph" },
];

/** What goes along with the conversation: beside it, and on narrow screens over it when it is asked for. */
export function SidePanel({
  side,
  onSide,
  children,
}: {
  side: Side | undefined;
  onSide(side: Side | undefined): void;
  children(side: Side): ReactNode;
}) {
  const narrow = useMedia(isNarrow);
  const shown = side ?? "history";
  const content = (
    <>
      <Segmented<Side> label="Beside the conversation" value={shown} options={SIDES} onChange={onSide} />
      <div className="mt-3">{children(shown)}</div>
    </>
  );
  if (narrow)
    return (
      <Sheet open={side !== undefined} onClose={() => onSide(undefined)} title="Thread">
        {content}
      </Sheet>
    );
  return (
    <aside
      aria-label="Thread"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      className="w-[340px] shrink-0 overflow-y-auto border-line border-l px-4 py-3"
    >
      {content}
    </aside>
  );
}
