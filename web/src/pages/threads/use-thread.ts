import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Run, Thread, ThreadState } from "../../../../src/agent-server/contract/records.ts";
import { toast } from "../../ui/toast.tsx";
import { isActive } from "./cancel.ts";
import { openTasks } from "./open-tasks.ts";
import { type ThreadView, threadRoute } from "./page.ts";
import { historyQuery, stateQuery } from "./queries.ts";
import { type RunOrder, startRun } from "./start-run.ts";
import type { Step } from "./steps.ts";
import { useLiveRun } from "./use-live-run.ts";
import { useSteps } from "./use-steps.ts";

/** What was fetched of a thread. */
export interface Fetched {
  thread: Thread;
  /** Newest first. */
  runs: readonly Run[];
  /** The newest. */
  state: ThreadState;
}

/** What the page of a thread shows, and what can be done from it. */
export function useThread({ thread, runs, state }: Fetched) {
  const { thread_id } = thread;
  const search = threadRoute.useSearch();
  const navigate = threadRoute.useNavigate();
  const client = useQueryClient();
  const active = runs.filter(isActive);
  /** The run that the thread works on, or the one that is next. */
  const working = active.find(({ status }) => status === "running") ?? active.at(-1);
  const ended = runs.find((run) => !isActive(run));
  const live = useLiveRun(thread_id, working?.run_id, ended?.run_id);
  // Each state that is told is a step more.
  useEffect(() => {
    if (live?.values !== undefined)
      void client.invalidateQueries({ queryKey: historyQuery(thread_id).queryKey }, { cancelRefetch: false });
  }, [client, thread_id, live?.values]);
  const past = useQuery({ ...stateQuery(thread_id, search.checkpoint), enabled: search.checkpoint !== undefined });
  /** A question is open, whatever state is looked at. */
  const asks = !working && !live && openTasks(state).some(({ interrupts }) => interrupts.length > 0);
  const isPast = search.checkpoint !== undefined;
  const assistant_id = search.assistant ?? runs[0]?.assistant_id ?? textOf(thread.metadata.assistant_id);

  /** Changes the URL. @param replace the entry in the browser's history */
  const show = (changed: Partial<ThreadView>, replace = false) =>
    void navigate({ search: (before: ThreadView) => ({ ...before, ...changed }), replace });

  /** @throws Error with a sentence for people */
  const start = async (order: Omit<RunOrder, "assistant_id">) => {
    if (!assistant_id) throw new Error("Choose an assistant first.");
    await startRun(client, thread_id, { assistant_id, checkpoint_id: search.checkpoint, ...order });
    if (isPast) show({ checkpoint: undefined });
  };

  /** Goes on from a step: with what would have come next, or, where the graph was done, with what people write. */
  const fork = async (step: Step) => {
    if (step.next.length === 0) {
      show({ checkpoint: step.checkpoint_id });
      return toast("The graph was done there: write what it is to go on with.");
    }
    try {
      await start({ input: null, checkpoint_id: step.checkpoint_id });
      toast(`A run goes on from step ${step.number ?? ""}.`);
    } catch (error) {
      toast((error as Error).message, { error: true });
    }
  };

  return {
    thread,
    runs,
    search,
    show,
    start,
    fork,
    working,
    live,
    past,
    isPast,
    history: useSteps(thread_id),
    assistant_id,
    newest: state,
    asks,
    /** The state that is looked at; undefined while a past one is fetched. */
    state: isPast ? past.data : state,
    values: isPast ? past.data?.values : (live?.values ?? state.values),
  };
}

export type ThreadModel = ReturnType<typeof useThread>;

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
