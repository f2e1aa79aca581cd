import type { NodeState } from "../../ui/graph.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { AssistantDrawing } from "../agents/drawing.tsx";
import { History } from "./history.tsx";
import type { Side } from "./page.ts";
import { Runs } from "./runs.tsx";
import { SidePanel } from "./side-panel.tsx";
import type { ThreadModel } from "./use-thread.ts";

/** The history, the runs, or the graph. */
export function ThreadSide({ model }: { model: ThreadModel }) {
  const { search, show } = model;
  return (
    <SidePanel side={search.side} onSide={(side) => show({ side }, true)}>
      {(side) => <Content side={side} model={model} />}
    </SidePanel>
  );
}

function Content({ side, model }: { side: Side; model: ThreadModel }) {
  const { thread, runs, history, search, show, fork } = model;
  if (side === "runs") return <Runs thread_id={thread.thread_id} runs={runs} />;
  if (side === "graph") return <ThreadGraph model={model} />;
  if (history.error) return <ErrorState error={history.error} retry={() => void history.refetch()} />;
  if (history.isPending) return <SkeletonRows label="Fetching the history" />;
  return (
    <History
      steps={history.steps}
      shown={search.checkpoint}
      onShow={(checkpoint) => show({ checkpoint }, search.checkpoint !== undefined)}
      onFork={(step) => void fork(step)}
      onMore={history.hasNextPage ? () => void history.fetchNextPage() : undefined}
    />
  );
}

/** The graph of the run that goes on, with the nodes that work; else that of the next run, with where it would go on. */
function ThreadGraph({ model: { live, working, assistant_id, state } }: { model: ThreadModel }) {
  const shown = live ? (working?.assistant_id ?? assistant_id) : assistant_id;
  if (!shown)
    return <EmptyState title="No assistant yet">Choose one below the conversation to see its graph.</EmptyState>;
  const stateOf = (node: string): NodeState | undefined => {
    if (live) return live.running.some(({ name, inside }) => [...inside, name][0] === node) ? "running" : undefined;
    return state?.next.includes(node) ? "next" : undefined;
  };
  return <AssistantDrawing assistant_id={shown} stateOf={stateOf} />;
}
