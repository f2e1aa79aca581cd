import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { AddToDataset } from "../traces/run/add-to-dataset.tsx";
import { stateQuery } from "./queries.ts";
import type { ThreadModel } from "./use-thread.ts";

/**
 * Creates an example from the shown state of a thread and the input that led to it. If earlier inputs preceded that input, the example
 * starts with the state that contains all of them.
 */
export function AddThread({ model, onClose }: { model: ThreadModel; onClose(): void }) {
  const { thread, history, search, values } = model;
  const { steps, hasNextPage, fetchNextPage } = history;
  const shown = steps.findIndex(({ checkpoint_id }) => checkpoint_id === search.checkpoint);
  const inputs = steps.flatMap(({ input }, index) => (input !== undefined && index >= shown ? [index] : []));
  const [last, ...earlier] = inputs;
  const isOnly = last !== undefined && earlier.length === 0 && !hasNextPage;
  const after = isOnly || last === undefined ? undefined : steps[last - 1]?.checkpoint_id;
  const start = useQuery({ ...stateQuery(thread.thread_id, after), enabled: after !== undefined });
  useEffect(() => {
    if (last === undefined && hasNextPage) void fetchNextPage();
  }, [last, hasNextPage, fetchNextPage]);
  if (values === undefined || (last === undefined ? hasNextPage : after !== undefined && start.isPending)) return null;
  return (
    <AddToDataset
      inputs={isOnly ? steps[last]?.input : start.data?.values}
      outputs={values}
      run_id={steps[Math.max(shown, 0)]?.run_id}
      onClose={onClose}
    />
  );
}
