import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { classes } from "../../ui/layout.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { AgentName } from "../agents/agent-name.tsx";
import { runsQuery } from "../runs/queries.ts";
import { questionText } from "../threads/inbox/question-text.ts";
import { WAITING } from "../threads/page.ts";
import { type ListedThread, labelOf, needsInput, threadsQuery } from "../threads/queries.ts";
import { ThreadStatus } from "../threads/thread-header.tsx";
import { HomeList, ITEM_LINK, ITEM_TIME, MORE_LINK } from "./home-list.tsx";

const keyOf = ({ thread_id }: ListedThread) => thread_id;

const Agent = ({ thread: { metadata } }: { thread: ListedThread }) => (
  <span className="max-w-40 shrink-0 truncate text-text-2 max-sm:hidden">
    <AgentName assistant_id={metadata.assistant_id} graph_id={metadata.graph_id} />
  </span>
);

export function WaitingThreads() {
  const { data, error, refetch } = useInfiniteQuery(threadsQuery(WAITING));
  return (
    <HomeList
      title="Needs your input"
      more={
        <Link to="/inbox" search={{}} className={MORE_LINK}>
          Inbox
        </Link>
      }
      items={data?.pages.flat()}
      error={error}
      retry={refetch}
      empty="Threads that are waiting for approval or an answer appear here."
      keyOf={keyOf}
    >
      {(thread) => (
        <>
          <Link to="/inbox" search={{ thread: thread.thread_id }} className={ITEM_LINK}>
            {questionText(thread)}
          </Link>
          <Agent thread={thread} />
          <span className={ITEM_TIME}>
            <RelativeTime time={thread.updated_at} />
          </span>
        </>
      )}
    </HomeList>
  );
}

export function RecentThreads() {
  const { data, error, refetch } = useInfiniteQuery(threadsQuery({}));
  return (
    <HomeList
      title="Recent threads"
      more={
        <Link to="/threads" search={{}} className={MORE_LINK}>
          All threads
        </Link>
      }
      items={data?.pages.flat()}
      error={error}
      retry={refetch}
      empty="Your conversations with agents appear here. Send a message above to start one."
      keyOf={keyOf}
    >
      {(thread) => (
        <>
          <Link to="/threads/$thread_id" params={{ thread_id: thread.thread_id }} search={{}} className={ITEM_LINK}>
            {labelOf(thread)}
          </Link>
          <Agent thread={thread} />
          <ThreadStatus status={thread.status} needsInput={needsInput(thread)} />
          <span className={classes(ITEM_TIME, "max-sm:hidden")}>
            <RelativeTime time={thread.updated_at} />
          </span>
        </>
      )}
    </HomeList>
  );
}

/** For deployments, which list threads but not runs. */
export function FailedThreads() {
  const { data, error, refetch } = useInfiniteQuery(threadsQuery(FAILED));
  return (
    <HomeList
      title="Failed threads"
      more={
        <Link to="/threads" search={FAILED} className={MORE_LINK}>
          All failed threads
        </Link>
      }
      items={data?.pages.flat()}
      error={error}
      retry={refetch}
      empty="Threads whose last run ended with an error appear here with the reason."
      keyOf={keyOf}
    >
      {(thread) => (
        <>
          <Link to="/threads/$thread_id" params={{ thread_id: thread.thread_id }} search={{}} className={ITEM_LINK}>
            {labelOf(thread)}
            <span className="ml-2 font-normal text-error">{thread.error?.message ?? thread.error?.error}</span>
          </Link>
          <span className={ITEM_TIME}>
            <RelativeTime time={thread.updated_at} />
          </span>
        </>
      )}
    </HomeList>
  );
}

const FAILED = { status: "error" } as const;

export function FailedRuns() {
  const { data, error, refetch } = useInfiniteQuery(runsQuery({ status: "error" }));
  return (
    <HomeList
      title="Failed runs"
      more={
        <Link to="/runs" search={{ status: "error" }} className={MORE_LINK}>
          All failed runs
        </Link>
      }
      items={data?.pages.flatMap(({ runs }) => runs)}
      error={error}
      retry={refetch}
      empty="Runs that end with an error appear here with the reason."
      keyOf={({ run_id }) => run_id}
    >
      {(run) => (
        <>
          <Link to="/runs" search={{ status: "error", run: run.run_id }} className={ITEM_LINK}>
            <AgentName {...run} />
            <span className="ml-2 font-normal text-error">{run.error?.message ?? run.error?.error}</span>
          </Link>
          <span className={ITEM_TIME}>
            <RelativeTime time={run.ended_at ?? run.created_at} />
          </span>
        </>
      )}
    </HomeList>
  );
}
