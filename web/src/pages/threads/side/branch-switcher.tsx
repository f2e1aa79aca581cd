import { ChevronLeft, ChevronRight } from "lucide-react";
import { Button } from "../../../ui/button.tsx";
import type { Fork } from "./steps.ts";

/** Shown where a thread forks: the number of the shown branch, and buttons to the other branches. */
export function BranchSwitcher({
  fork: { heads, at },
  onBranch,
}: {
  fork: Fork;
  onBranch(checkpoint_id: string | undefined): void;
}) {
  return (
    <fieldset aria-label="Branches" className="flex w-fit items-center gap-0.5 text-table text-text-2">
      <Button
        look="quiet"
        small
        square
        aria-label="Previous branch"
        disabled={at === 0}
        onClick={() => onBranch(heads[at - 1])}
      >
        <ChevronLeft size={14} aria-hidden />
      </Button>
      <span aria-live="polite">
        Branch {at + 1} of {heads.length}
      </span>
      <Button
        look="quiet"
        small
        square
        aria-label="Next branch"
        disabled={at === heads.length - 1}
        onClick={() => onBranch(heads[at + 1])}
      >
        <ChevronRight size={14} aria-hidden />
      </Button>
    </fieldset>
  );
}
