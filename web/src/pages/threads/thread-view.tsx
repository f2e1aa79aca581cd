import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Id } from "../../ui/code-block.tsx";
import { SplitButton } from "../../ui/split-button.tsx";
import { useCancel } from "./cancel.ts";
import { ThreadContent } from "./thread-content.tsx";
import { ThreadFoot } from "./thread-foot.tsx";
import { ThreadMenu } from "./thread-menu.tsx";
import { ThreadSide } from "./thread-side.tsx";
import { ThreadStatus } from "./thread-status.tsx";
import { titleOf } from "./thread-title.ts";
import { type Fetched, useThread } from "./use-thread.ts";

const CRUMBS = [{ label: "Threads", to: "/threads" }];

/** A thread: the conversation with what is to be answered and written below it, and the history beside it. */
export function ThreadView(fetched: Fetched) {
  const model = useThread(fetched);
  const { thread, working, asks, search, show } = model;
  const { graph_id } = thread.metadata;
  const { cancel, items } = useCancel(thread.thread_id);
  useKeys({
    v: {
      does: "The conversation, or the state as it is",
      run: () => show({ view: search.view ? undefined : "state" }, true),
    },
  });
  return (
    <Page
      fill
      title={titleOf(fetched.state.values) ?? (graph_id ? `Thread of ${graph_id}` : "Thread")}
      crumbs={CRUMBS}
      beside={
        <span className="flex shrink-0 items-center gap-2">
          <ThreadStatus status={working ? "busy" : thread.status} asks={asks} />
          <span className="max-sm:hidden">
            <Id id={thread.thread_id} />
          </span>
        </span>
      }
      actions={
        <>
          {working && (
            <SplitButton
              menuLabel="How to cancel"
              items={items([working.run_id])}
              onClick={() => void cancel([working.run_id], "interrupt")}
            >
              Cancel
            </SplitButton>
          )}
          <ThreadMenu thread_id={thread.thread_id} />
        </>
      }
    >
      <div className="flex min-h-0 flex-1">
        <div className="flex min-w-0 flex-1 flex-col">
          <ThreadContent model={model} />
          <ThreadFoot model={model} />
        </div>
        <ThreadSide model={model} />
      </div>
    </Page>
  );
}
