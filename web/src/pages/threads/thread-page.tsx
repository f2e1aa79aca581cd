import { useQuery } from "@tanstack/react-query";
import { Page } from "../../frame/header.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { threadRoute } from "./page.ts";
import { runsQuery, stateQuery, threadQuery } from "./queries.ts";
import { ThreadView } from "./thread-view.tsx";

const CRUMBS = [{ label: "Threads", to: "/threads" }];

/** A thread: its conversation or its state, and beside it the history, the runs and the graph. */
export function ThreadPage() {
  const { thread_id } = threadRoute.useParams();
  const thread = useQuery(threadQuery(thread_id));
  const runs = useQuery(runsQuery(thread_id));
  const state = useQuery(stateQuery(thread_id, undefined));
  const failed = [thread, runs, state].find(({ error, data }) => error && data === undefined);
  if (failed?.error)
    return (
      <Page title="Thread" crumbs={CRUMBS}>
        <ErrorState error={failed.error} retry={() => void failed.refetch()} />
      </Page>
    );
  if (!thread.data || !runs.data || !state.data)
    return (
      <Page title="…" crumbs={CRUMBS}>
        <SkeletonRows label="Fetching the thread" height={56} />
      </Page>
    );
  return <ThreadView key={thread_id} thread={thread.data} runs={runs.data} state={state.data} />;
}
