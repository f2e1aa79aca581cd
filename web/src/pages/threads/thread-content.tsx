import { useQueries } from "@tanstack/react-query";
import { PanelRight } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "../../ui/button.tsx";
import { Segmented } from "../../ui/form/segmented.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { classes } from "../../ui/layout.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Conversation } from "./conversation/conversation.tsx";
import { messageCountQuery } from "./queries.ts";
import { BranchSwitcher } from "./side/branch-switcher.tsx";
import type { ThreadModel } from "./use-thread.ts";

export function ThreadContent({ model }: { model: ThreadModel }) {
  const { search, show } = model;
  return (
    <>
      <div className="flex items-center justify-between gap-2 border-line border-b px-6 py-1.5 max-sm:px-4">
        <Segmented
          label="View"
          value={search.view ?? "conversation"}
          options={[
            { value: "conversation", label: "Conversation" },
            { value: "state", label: "State" },
          ]}
          onChange={(view) => show({ view: view === "state" ? view : undefined }, true)}
        />
        <Button look="quiet" className="sm:hidden" onClick={() => show({ side: "history" })}>
          <PanelRight size={15} aria-hidden /> History
        </Button>
      </div>
      {/* flex-col-reverse keeps the end of the conversation in view while messages are added. */}
      <section
        aria-label="Content"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        tabIndex={0}
        className={classes("flex min-h-0 flex-1 overflow-y-auto", search.view !== "state" && "flex-col-reverse")}
      >
        <div className="w-full min-w-0 flex-1">
          <Content model={model} />
        </div>
      </section>
    </>
  );
}

function Content({ model }: { model: ThreadModel }) {
  const { search, past, isPast, live, state, values, history, thread } = model;
  const forks = useMessageForks(model);
  if (past.error) return <ErrorState error={past.error} retry={() => void past.refetch()} />;
  if (!state) return <SkeletonRows label="Loading state" height={56} />;
  if (search.view !== "state")
    return (
      <Conversation
        values={values}
        live={isPast ? undefined : live}
        durations={history.durations}
        forks={forks}
        error={isPast ? undefined : thread.error}
      />
    );
  const { next, tasks, metadata, created_at } = state;
  return (
    <div className="px-6 py-4 max-sm:px-4">
      <JsonTree value={live && !isPast ? { values } : { values, next, tasks, metadata, created_at }} open={3} />
    </div>
  );
}

/** Branch switchers by the index of the message before which the thread forks. */
function useMessageForks({ thread, history, showBranch }: ThreadModel): ReadonlyMap<number | undefined, ReactNode> {
  const steps = history.steps.filter(({ fork }) => fork).reverse();
  const counts = useQueries({
    queries: steps.map(({ parent_id }) => messageCountQuery(thread.thread_id, parent_id)),
  });
  const switchers = steps.map(
    ({ checkpoint_id, fork }) => fork && <BranchSwitcher key={checkpoint_id} fork={fork} onBranch={showBranch} />,
  );
  return Map.groupBy(switchers, (_, index) => counts[index]?.data);
}
