import { type ReactNode, useState } from "react";
import { Segmented } from "../../../ui/form/segmented.tsx";
import type { NodeState } from "../../../ui/graph.tsx";
import { isNarrow, useMedia } from "../../../ui/layout.tsx";
import { Sheet } from "../../../ui/overlay/dialog.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { toggled } from "../../../ui/table/selection.tsx";
import { AssistantDrawing } from "../../agents/drawing.tsx";
import type { Side } from "../page.ts";
import type { ThreadModel } from "../use-thread.ts";
import { EditState } from "./edit-state.tsx";
import { History } from "./history.tsx";
import type { Step } from "./steps.ts";
import { Runs } from "./thread-runs.tsx";

export function ThreadSide({ model }: { model: ThreadModel }) {
  const { search, show } = model;
  return (
    <SidePanel side={search.side} onSide={(side) => show({ side }, true)}>
      {(side) => <Content side={side} model={model} />}
    </SidePanel>
  );
}

function Content({ side, model }: { side: Side; model: ThreadModel }) {
  const { thread, runs, history, search } = model;
  if (side === "runs") return <Runs thread_id={thread.thread_id} runs={runs} />;
  if (side === "graph") return <ThreadGraph model={model} />;
  if (history.error) return <ErrorState error={history.error} retry={() => void history.refetch()} />;
  if (history.isPending || search.task) return <SkeletonRows label="Loading history" />;
  return <ThreadHistory model={model} />;
}

function ThreadHistory({ model }: { model: ThreadModel }) {
  const { thread, history, search, newest, live, show, showBranch, fork } = model;
  const [edited, setEdited] = useState<Step>();
  const [first] = history.steps;
  const isNewest = live ? first?.run_id === live.run_id : first?.checkpoint_id === newest.checkpoint?.checkpoint_id;
  return (
    <>
      <History
        steps={history.steps}
        isCurrent={isNewest || history.branch !== undefined}
        shown={search.checkpoint}
        onShow={(checkpoint) => show({ checkpoint, branch: history.branch }, search.checkpoint !== undefined)}
        onBranch={showBranch}
        onFork={(step) => void fork(step)}
        onEdit={setEdited}
        onMore={history.hasNextPage ? () => void history.fetchNextPage() : undefined}
      />
      {edited && (
        <EditState
          thread_id={thread.thread_id}
          checkpoint_id={edited.checkpoint_id}
          onSaved={(checkpoint_id) => fork({ ...edited, checkpoint_id })}
          onClose={() => setEdited(undefined)}
        />
      )}
    </>
  );
}

/** Graph of the active run with the running nodes marked, or graph of the next run with the next nodes marked. */
function ThreadGraph({ model }: { model: ThreadModel }) {
  const { live, active_run, assistant_id, state, breakpoints, show } = model;
  const shown = live ? (active_run?.assistant_id ?? assistant_id) : assistant_id;
  if (!shown)
    return (
      <EmptyState title="No assistant selected">
        Select an assistant below the conversation to see its graph.
      </EmptyState>
    );
  const stateOf = (node: string): NodeState | undefined => {
    if (live)
      return live.running.some(({ name, subgraphs }) => [...subgraphs, name][0] === node) ? "running" : undefined;
    return state?.next.includes(node) ? "next" : undefined;
  };
  return (
    <>
      <p className="mb-2 text-table text-text-3">Select a node: runs that you start here will pause before it.</p>
      <AssistantDrawing
        assistant_id={shown}
        stateOf={stateOf}
        breakpoints={breakpoints}
        onBreakpoint={(node) => show({ pause: toggled(new Set(breakpoints), node).join(",") || undefined }, true)}
      />
    </>
  );
}

const SIDES: readonly { value: Side; label: string }[] = [
  { value: "history", label: "History" },
  { value: "runs", label: "Runs" },
  { value: "graph", label: "Graph" },
];

/** Panel beside the conversation. On narrow screens, a sheet that the user can open. */
function SidePanel({
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
      <Segmented<Side> label="Side panel" value={shown} options={SIDES} onChange={onSide} />
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
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
      className="w-[340px] shrink-0 overflow-y-auto border-line border-l px-4 py-3"
    >
      {content}
    </aside>
  );
}
