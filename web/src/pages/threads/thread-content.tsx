import { PanelRight } from "lucide-react";
import { Button } from "../../ui/button.tsx";
import { classes } from "../../ui/classes.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Conversation } from "./conversation.tsx";
import type { ThreadModel } from "./use-thread.ts";

/** The conversation, or the state as it is. */
export function ThreadContent({ model }: { model: ThreadModel }) {
  const { search, show } = model;
  return (
    <>
      <div className="flex items-center justify-between gap-2 border-line border-b px-6 py-1.5 max-sm:px-4">
        <Segmented
          label="Show"
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
      {/* A conversation is upside down, so that the browser keeps its end in sight while it grows. */}
      <section
        aria-label="Content"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        className={classes("flex min-h-0 flex-1 overflow-y-auto", search.view !== "state" && "flex-col-reverse")}
      >
        <div className="w-full min-w-0 flex-1">
          <Shown model={model} />
        </div>
      </section>
    </>
  );
}

function Shown({ model: { search, past, isPast, live, state, values, history, thread } }: { model: ThreadModel }) {
  if (past.error) return <ErrorState error={past.error} retry={() => void past.refetch()} />;
  if (!state) return <SkeletonRows label="Fetching the state" height={56} />;
  if (search.view !== "state")
    return (
      <Conversation
        values={values}
        live={isPast ? undefined : live}
        durations={history.durations}
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
