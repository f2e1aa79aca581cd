import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import type { Run, Thread, ThreadState, ThreadTask } from "../../../../src/agent-server/contract/records.ts";
import { toast } from "../../ui/overlay/toast.tsx";
import { isActive } from "./cancel.ts";
import type { Live, RunningTask } from "./conversation/live-run.ts";
import { type ThreadView, threadRoute } from "./page.ts";
import { historyQuery, type RunRequest, startRun, stateQuery } from "./queries.ts";
import type { Step } from "./side/steps.ts";
import { branchOf, stepsOf, toolDurations } from "./side/steps.ts";
import { useLiveRun, useThreadEvents } from "./use-live-run.ts";

export interface ThreadData {
  thread: Thread;
  /** Runs of the thread, newest first. */
  runs: readonly Run[];
  /** Newest state of the thread. */
  state: ThreadState;
}

export function useThread({ thread, runs, state }: ThreadData) {
  const { thread_id } = thread;
  const search = threadRoute.useSearch();
  const navigate = threadRoute.useNavigate();
  const client = useQueryClient();
  const active = runs.filter(isActive);
  /** The running run, or the next run in the queue. */
  const active_run = active.find(({ status }) => status === "running") ?? active.at(-1);
  const ended = runs.find((run) => !isActive(run));
  useThreadEvents(thread_id);
  const live = useTasksOfState(useLiveRun(thread_id, active_run?.run_id, ended?.run_id), thread_id, state);
  // Refetches the history after each streamed state, which is a new step.
  useEffect(() => {
    if (live?.values !== undefined)
      void client.invalidateQueries({ queryKey: historyQuery(thread_id).queryKey }, { cancelRefetch: false });
  }, [client, thread_id, live?.values]);
  const history = useSteps(thread_id, runs, search.branch ?? search.checkpoint, search.task);
  useEffect(() => {
    if (!search.task || history.isPending || (!history.beforeTask && history.hasNextPage)) return;
    if (!history.beforeTask) toast("The checkpoint was not found: the newest state is shown.", { error: true });
    const checkpoint = history.beforeTask;
    void navigate({ search: (before: ThreadView) => ({ ...before, task: undefined, checkpoint }), replace: true });
  }, [search.task, history.isPending, history.beforeTask, history.hasNextPage, navigate]);
  /** ID of the shown checkpoint. Undefined for the newest one. */
  const checkpoint_id = search.checkpoint ?? (search.branch && (history.isMissing ? search.branch : history.branch));
  const past = useQuery({ ...stateQuery(thread_id, checkpoint_id), enabled: checkpoint_id !== undefined });
  /** Whether the newest state has an open interrupt, even if a past state is shown. */
  const needsInput = !active_run && !live && openTasks(state).some(({ interrupts }) => interrupts.length > 0);
  const isPast = checkpoint_id !== undefined;
  const breakpoints = search.pause?.split(",");
  const assistant_id = search.assistant ?? runs[0]?.assistant_id ?? textOf(thread.metadata.assistant_id);

  /** Updates the view in the URL. @param replace replaces the browser history entry instead of adding an entry */
  const show = (changed: Partial<ThreadView>, replace = false) =>
    void navigate({ search: (before: ThreadView) => ({ ...before, ...changed }), replace });

  /** Shows the last step of a branch. */
  const showBranch = (head: string | undefined) =>
    show({ branch: head === history.newest ? undefined : head, checkpoint: undefined });

  /** @throws Error with a message for the user */
  const start = async (request: Omit<RunRequest, "assistant_id">) => {
    if (!assistant_id) throw new Error("No assistant selected. Select an assistant, then try again.");
    await startRun(client, thread_id, {
      assistant_id,
      checkpoint_id,
      interrupt_before: breakpoints,
      ...request,
    });
    // The run continues its checkpoint in the newest branch.
    if (isPast) show({ checkpoint: undefined, branch: undefined });
  };

  /** Continues from a step by running its next nodes. If the graph ended at the step, prompts for a message instead. */
  const fork = async (step: Step) => {
    if (step.next.length === 0) {
      show({ checkpoint: step.checkpoint_id });
      return toast("The graph finished at this step. Send a message to continue.");
    }
    try {
      await start({ input: null, checkpoint_id: step.checkpoint_id });
      toast(step.number === undefined ? "Running from the selected step" : `Running from step ${step.number}`);
    } catch (error) {
      toast((error as Error).message, { error: true });
    }
  };

  return {
    thread,
    runs,
    search,
    show,
    showBranch,
    start,
    fork,
    active_run,
    live,
    past,
    isPast,
    breakpoints,
    history,
    assistant_id,
    newest: state,
    needsInput,
    /** State to show. Undefined while a past state is loading. */
    state: isPast ? past.data : state,
    values: isPast ? past.data?.values : (live?.values ?? state.values),
  };
}

export type ThreadModel = ReturnType<typeof useThread>;

/** Poll interval of the state during a run whose event stream does not contain its tasks. */
const STATE_POLL_MS = 1_000;

/** Adds the running tasks of the newest state to a run that streams no task events. */
function useTasksOfState(live: Live | undefined, thread_id: string, { tasks, metadata }: ThreadState) {
  const isPolled = live !== undefined && !live.hasTaskEvents;
  useQuery({ ...stateQuery(thread_id, undefined), enabled: isPolled, refetchInterval: STATE_POLL_MS });
  if (!isPolled || metadata?.run_id !== live.run_id) return live;
  const running = tasks.filter(isRunning).map(({ id, name }): RunningTask => ({ id, name, subgraphs: [] }));
  return { ...live, running };
}

const isRunning = ({ name, result, error, interrupts }: ThreadTask): boolean =>
  name !== "__start__" && (result ?? error ?? null) === null && interrupts.length === 0;

const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);

/** Loaded part of one branch of a thread's history, with steps and tool durations. */
function useSteps(
  thread_id: string,
  runs: readonly Run[],
  checkpoint_id: string | undefined,
  task: string | undefined,
) {
  const { data, error, isPending, isFetching, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(
    historyQuery(thread_id),
  );
  const known = useMemo(() => {
    const all = data?.pages.flat() ?? [];
    const { states, forks } = branchOf(all, checkpoint_id);
    const steps = stepsOf(states, new Map(runs.map((run) => [run.run_id, run.created_at])), forks);
    const newest = all[0]?.checkpoint?.checkpoint_id;
    const head = steps[0]?.checkpoint_id;
    const beforeTask = all.find(({ tasks }) => tasks.some(({ id }) => id === task))?.checkpoint?.checkpoint_id;
    const isMissing = checkpoint_id !== undefined && !steps.some((step) => step.checkpoint_id === checkpoint_id);
    return {
      steps,
      durations: toolDurations(states, steps),
      newest,
      isMissing,
      /** ID of the checkpoint whose next tasks include the requested task. */
      beforeTask,
      /** Last step of the shown branch. Undefined for the newest branch. */
      branch: isMissing || head === newest ? undefined : head,
    };
  }, [data, runs, checkpoint_id, task]);
  const isIncomplete = known.isMissing || (task !== undefined && !known.beforeTask);
  // The branch of an old checkpoint is known once the checkpoint is loaded.
  useEffect(() => {
    if (isIncomplete && hasNextPage && !isFetching && !error) void fetchNextPage();
  }, [isIncomplete, hasNextPage, isFetching, error, fetchNextPage]);
  return { ...known, error, isPending, hasNextPage, fetchNextPage, refetch };
}

/** Returns the tasks of a state that have no result. In a past state, a later run may have dropped these tasks. */
export const openTasks = ({ tasks }: ThreadState): readonly ThreadTask[] =>
  tasks.filter(({ result }) => result === undefined || result === null);
