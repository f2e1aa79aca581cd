import { GitFork, Pencil } from "lucide-react";
import { useEffect, useRef } from "react";
import { useKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import { duration } from "../../../ui/format.ts";
import { classes } from "../../../ui/layout.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState } from "../../../ui/states.tsx";
import { BranchSwitcher } from "./branch-switcher.tsx";
import { type Step, withCounts } from "./steps.ts";

/** The checkpoints of one branch of a thread, newest first. A click shows the checkpoint's state. */
export function History({
  steps,
  isCurrent,
  shown,
  onShow,
  onBranch,
  onFork,
  onEdit,
  onMore,
}: {
  steps: readonly Step[];
  /** Whether the first step is the newest one. False after a run until the steps are loaded again. */
  isCurrent: boolean;
  /** ID of the selected checkpoint. Undefined for the newest checkpoint. */
  shown: string | undefined;
  onShow(checkpoint_id: string | undefined): void;
  onBranch(checkpoint_id: string | undefined): void;
  onFork(step: Step): void;
  onEdit(step: Step): void;
  /** Loads older steps. Undefined if all steps are loaded. */
  onMore: (() => void) | undefined;
}) {
  const at = shown === undefined ? 0 : steps.findIndex(({ checkpoint_id }) => checkpoint_id === shown);
  const show = (index: number) => onShow(index === 0 && isCurrent ? undefined : steps[index]?.checkpoint_id);
  const move = (by: number) => show(Math.min(Math.max(at + by, 0), steps.length - 1));
  useKeys({
    j: { does: "Older step", run: () => move(1) },
    k: { does: "Newer step", run: () => move(-1) },
  });
  if (steps.length === 0)
    return (
      <EmptyState title="No history yet">
        Each step of a run adds a checkpoint. You can continue from any checkpoint.
      </EmptyState>
    );
  const usual = usualChanges(steps);
  return (
    <>
      <ol aria-label="History">
        {steps.map((step, index) => (
          <HistoryStep
            key={step.checkpoint_id}
            step={step}
            note={noteOf(step, usual)}
            isTimed={step.run_id === undefined || step.run_id !== steps[index - 1]?.run_id}
            isShown={index === at}
            onShow={() => show(index)}
            onBranch={onBranch}
            onFork={() => onFork(step)}
            onEdit={() => onEdit(step)}
          />
        ))}
      </ol>
      {onMore && (
        <Button look="quiet" small className="mt-2" onClick={onMore}>
          Load older steps
        </Button>
      )}
    </>
  );
}

function HistoryStep({
  step,
  note,
  isTimed,
  isShown,
  onShow,
  onBranch,
  onFork,
  onEdit,
}: {
  step: Step;
  note: string;
  /** Whether to show the time: in the last step of each run. */
  isTimed: boolean;
  isShown: boolean;
  onShow(): void;
  onBranch(checkpoint_id: string | undefined): void;
  onFork(): void;
  onEdit(): void;
}) {
  const item = useRef<HTMLLIElement>(null);
  // LangGraph gives the checkpoint before the first input the number -1.
  const hasNumber = step.number !== undefined && step.number >= 0;
  useEffect(() => {
    if (isShown) item.current?.scrollIntoView({ block: "nearest" });
  }, [isShown]);
  return (
    <li ref={item} className="relative pl-5">
      <span aria-hidden className="absolute top-0 bottom-0 left-[7px] w-px bg-line-strong" />
      <span
        aria-hidden
        className={classes(
          "absolute top-3 left-[3px] size-[9px] rounded-full border-2",
          isShown ? "border-accent-text bg-accent-text" : "border-line-strong bg-bg",
          step.isPaused && "border-interrupted",
        )}
      />
      <div className={classes("rounded-md", isShown ? "bg-selected" : "hover:bg-hover")}>
        <button
          type="button"
          aria-current={isShown ? "step" : undefined}
          onClick={onShow}
          className="block w-full rounded-md px-2 py-1.5 text-left text-table"
        >
          <span className="flex items-baseline gap-2">
            <span className="w-5 shrink-0 text-right font-mono text-text-3">{hasNumber && step.number}</span>
            <span className="min-w-0 flex-1 truncate font-medium">{titleOf(step)}</span>
            {step.duration_ms !== undefined && (
              <span className="shrink-0 font-mono text-text-2">{duration(step.duration_ms)}</span>
            )}
          </span>
          {(note !== "" || isTimed) && (
            <span className="flex items-baseline gap-2 pl-7 text-text-3">
              <span className="min-w-0 flex-1 break-words">{note}</span>
              {isTimed && <RelativeTime time={step.created_at} />}
            </span>
          )}
        </button>
        {isShown && (
          <div className="flex flex-wrap gap-2 px-2 pb-2 pl-9">
            <Button small onClick={onFork}>
              <GitFork size={13} aria-hidden /> Run from here
            </Button>
            <Button small onClick={onEdit}>
              <Pencil size={13} aria-hidden /> Edit state…
            </Button>
          </div>
        )}
        {step.fork && (
          <div className="px-2 pb-1.5 pl-9">
            <BranchSwitcher fork={step.fork} onBranch={onBranch} />
          </div>
        )}
      </div>
    </li>
  );
}

function titleOf({ nodes, source }: Step): string {
  if (nodes.length > 0) return nodes.every((node) => node === "__start__") ? "input" : withCounts(nodes);
  return source === "update" ? "state updated" : source === "fork" ? "fork" : "run started";
}

/** The keys that all steps of nodes change, such as `messages`. Empty for a single step. */
function usualChanges(steps: readonly Step[]): ReadonlySet<string> {
  const [first, ...others] = steps.filter(({ changed }) => changed.length > 0);
  const isUsual = (key: string) => others.length > 0 && others.every(({ changed }) => changed.includes(key));
  return new Set(first?.changed.filter(isUsual));
}

/** @param usual keys that are not named, because all steps change them */
function noteOf({ changed, next, isPaused }: Step, usual: ReadonlySet<string>): string {
  const notes = [];
  const unusual = changed.filter((key) => !usual.has(key));
  if (unusual.length > 0) notes.push(`changed ${unusual.join(", ")}`);
  if (isPaused) notes.push(`interrupted in ${withCounts(next)}`);
  else if (changed.length === 0 && next.length > 0)
    notes.push(`next ${withCounts(next.map((node) => (node === "__start__" ? "input" : node)))}`);
  return notes.join(" · ");
}
