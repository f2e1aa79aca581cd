import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { historyQuery } from "./queries.ts";
import { stepsOf, toolDurations } from "./steps.ts";

/** The history of a thread as far as it was fetched, and what can be told from it. */
export function useSteps(thread_id: string) {
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(historyQuery(thread_id));
  const known = useMemo(() => {
    const states = data?.pages.flat() ?? [];
    const steps = stepsOf(states);
    return { steps, durations: toolDurations(states, steps) };
  }, [data]);
  return { ...known, error, isPending, hasNextPage, fetchNextPage, refetch };
}
