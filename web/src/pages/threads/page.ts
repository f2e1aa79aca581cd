import { useQuery } from "@tanstack/react-query";
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { Inbox, MessagesSquare } from "lucide-react";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";
import { skipOf } from "../queues/page.ts";
import { findThreads, needsInput, threadCountQuery } from "./queries.ts";
import { THREAD_STATUSES, type ThreadsSearch } from "./thread-filter.ts";

export const threadsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/threads",
  validateSearch: (search): ThreadsSearch => ({
    status: THREAD_STATUSES.find((status) => status === search.status),
    q: textOf(search.q),
    metadata: textOf(search.metadata),
    experiments: search.experiments === true ? true : undefined,
    sort: search.sort === "created_at" ? search.sort : undefined,
    order: search.order === "asc" ? search.order : undefined,
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./list/threads-page.tsx")),
    "ThreadsPage",
  ),
});

export const newThreadRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/threads/new",
  validateSearch: (search): { assistant?: string } => ({ assistant: textOf(search.assistant) }),
  component: lazyRouteComponent(
    whenOnline(() => import("./new-thread-page.tsx")),
    "NewThreadPage",
  ),
});

export const SIDES = ["history", "runs", "graph"] as const;
export type Side = (typeof SIDES)[number];

export interface ThreadView {
  /** Main content of the page. Default: the conversation. */
  view?: "state";
  /** Open tab of the side panel. Default: the history. On narrow screens, the panel is closed by default. */
  side?: Side;
  /** ID of the checkpoint whose state is shown. Default: the newest checkpoint. */
  checkpoint?: string;
  /** ID of a task, as traces name it. The page replaces it by the checkpoint before the task. */
  task?: string;
  /** ID of a checkpoint of the branch that is shown. Default: the branch of the selected or newest checkpoint. */
  branch?: string;
  /** ID of the assistant for the next run. Default: the last run's assistant. */
  assistant?: string;
  /** Breakpoints: nodes before which the next runs pause, separated by commas. */
  pause?: string;
}

export const threadRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/threads/$thread_id",
  validateSearch: (search): ThreadView => ({
    view: search.view === "state" ? search.view : undefined,
    side: SIDES.find((side) => side === search.side),
    checkpoint: textOf(search.checkpoint),
    task: textOf(search.task),
    branch: textOf(search.branch),
    assistant: textOf(search.assistant),
    pause: textOf(search.pause),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./thread-page.tsx")),
    "ThreadPage",
  ),
});

export interface InboxView {
  /** ID of the selected thread. Default: the first. */
  thread?: string;
  /** ID of the annotation queue that is shown instead of the threads. */
  queue?: string;
  /** The number of items that the user has skipped in the queue. */
  skip?: number;
}

export const inboxRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/inbox",
  validateSearch: (search): InboxView => ({
    thread: textOf(search.thread),
    queue: textOf(search.queue),
    skip: skipOf(search.skip),
  }),
  component: lazyRouteComponent(
    whenOnline(() => import("./inbox/inbox-page.tsx")),
    "InboxPage",
  ),
});

/** Threads that wait for a person: at an interrupt, or because their run was cancelled or stopped at a breakpoint. */
export const WAITING: ThreadsSearch = { status: "interrupted" };

export const inbox: Page = {
  nav: {
    label: "Inbox",
    to: "/inbox",
    icon: Inbox,
    scope: "agents",
    count: {
      useCount: () => useQuery(threadCountQuery(WAITING)).data,
      title: "Threads that need your input or are paused",
    },
  },
  routes: [inboxRoute],
};

export const threads: Page = {
  nav: { label: "Threads", to: "/threads", icon: MessagesSquare, scope: "agents" },
  routes: [threadsRoute, newThreadRoute, threadRoute],
  palette: [
    {
      group: "Threads",
      find: async (q, signal) =>
        (await findThreads({ q }, { limit: 8 }, signal)).map((thread) => ({
          label: thread.title ?? thread.thread_id,
          hint: needsInput(thread) ? "Needs your input" : thread.status,
          to: `/threads/${thread.thread_id}`,
        })),
    },
  ],
};
