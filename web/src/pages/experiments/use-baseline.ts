import { useQueryClient } from "@tanstack/react-query";
import { api } from "../../api/request.ts";
import { toast } from "../../ui/toast.tsx";
import { EXPERIMENTS } from "./queries.ts";

/** Names the experiment that the others of a dataset are compared with; null for none. */
export function useBaseline(dataset_id: string | null): (session_id: string | null) => Promise<void> {
  const client = useQueryClient();
  return async (session_id) => {
    try {
      await api.patch(`/api/v1/datasets/${dataset_id}`, { baseline_experiment_id: session_id });
      await client.invalidateQueries({ queryKey: EXPERIMENTS });
      toast(session_id ? "The others are compared with it from now on." : "The dataset has no baseline any more.");
    } catch (error) {
      toast((error as Error).message, { error: true });
    }
  };
}
