import { useQuery } from "@tanstack/react-query";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Id } from "../../ui/code-block.tsx";
import { SplitButton } from "../../ui/overlay/split-button.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { useCancel } from "./cancel.ts";
import { nameOf, titleOf } from "./conversation/messages.ts";
import { threadRoute } from "./page.ts";
import { runsQuery, stateQuery, threadQuery } from "./queries.ts";
import { Runs } from "./side/thread-runs.tsx";
import { ThreadSide } from "./side/thread-side.tsx";
import { ThreadContent } from "./thread-content.tsx";
import { ThreadFooter } from "./thread-footer.tsx";
import { ThreadMenu, ThreadStatus } from "./thread-header.tsx";
import { type ThreadData, useThread } from "./use-thread.ts";

const CRUMBS = [{ label: "Threads", to: "/threads" }];

/** Page of a thread: conversation or state, and a side panel with history, runs and graph. */
export function ThreadPage() {
  const { thread_id } = threadRoute.useParams();
  const thread = useQuery(threadQuery(thread_id));
  const runs = useQuery(runsQuery(thread_id));
  const state = useQuery(stateQuery(thread_id, undefined));
  const failed = [thread, runs, state].find(({ error, data }) => error && data === undefined);
  if (failed?.error)
    return (
      <Page title={(thread.data && nameOf(thread.data.metadata)) ?? "Thread"} crumbs={CRUMBS}>
        <ErrorState error={failed.error} retry={() => void failed.refetch()} />
        {runs.data && runs.data.length > 0 && (
          <section aria-label="Runs of the thread" className="mx-auto max-w-2xl">
            <Runs thread_id={thread_id} runs={runs.data} />
          </section>
        )}
      </Page>
    );
  if (!thread.data || !runs.data || !state.data)
    return (
      <Page title="…" crumbs={CRUMBS}>
        <SkeletonRows label="Loading thread" height={56} />
      </Page>
    );
  return <ThreadView key={thread_id} thread={thread.data} runs={runs.data} state={state.data} />;
}

/** Content of a loaded thread: the conversation, open interrupts, the input and the side panel. */
function ThreadView(data: ThreadData) {
  const model = useThread(data);
  const { thread, active_run, needsInput, search, show } = model;
  const { graph_id } = thread.metadata;
  const { cancel, items } = useCancel(thread.thread_id);
  useKeys({
    v: {
      does: "Switch between conversation and state",
      run: () => show({ view: search.view ? undefined : "state" }, true),
    },
  });
  return (
    <Page
      fill
      title={nameOf(thread.metadata) ?? titleOf(data.state.values) ?? (graph_id ? `${graph_id} thread` : "Thread")}
      crumbs={CRUMBS}
      beside={
        <span className="flex shrink-0 items-center gap-2">
          <ThreadStatus status={active_run ? "busy" : thread.status} needsInput={needsInput} />
          <span className="max-sm:hidden">
            <Id id={thread.thread_id} />
          </span>
        </span>
      }
      actions={
        <>
          {active_run && (
            <SplitButton
              menuLabel="Cancel options"
              items={items([active_run.run_id])}
              onClick={() => void cancel([active_run.run_id], "interrupt")}
            >
              Cancel
            </SplitButton>
          )}
          <ThreadMenu model={model} />
        </>
      }
    >
      <div className="flex min-h-0 flex-1">
        <div className="flex min-w-0 flex-1 flex-col">
          <ThreadContent model={model} />
          <ThreadFooter model={model} />
        </div>
        <ThreadSide model={model} />
      </div>
    </Page>
  );
}
