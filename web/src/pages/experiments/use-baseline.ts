import { useQueryClient } from "@tanstack/react-query";
import { api } from "../../api/request.ts";
import { toast } from "../../ui/overlay/toast.tsx";
import { EXPERIMENTS } from "./queries.ts";

/** Returns a function that sets a dataset's baseline experiment. Null removes the baseline. */
export function useBaseline(dataset_id: string | null): (session_id: string | null) => Promise<void> {
  const client = useQueryClient();
  return async (session_id) => {
    try {
      await api.patch(`/api/v1/datasets/${dataset_id}`, { baseline_experiment_id: session_id });
      await client.invalidateQueries({ queryKey: EXPERIMENTS });
      toast(session_id ? "Baseline set" : "Baseline removed");
    } catch (error) {
      toast((error as Error).message, { error: true });
    }
  };
}
