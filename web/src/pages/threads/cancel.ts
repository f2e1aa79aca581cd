import { useQueryClient } from "@tanstack/react-query";
import type { CancelAction, RunStatus } from "../../../../src/agent-server/contract/records.ts";
import { api, send } from "../../api/request.ts";
import type { MenuItem } from "../../ui/overlay/menu.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { CANCEL_ACTIONS } from "../runs/cancel-actions.ts";
import { threadKey } from "./queries.ts";

export const isActive = ({ status }: { status: RunStatus }): boolean => status === "pending" || status === "running";

/** Returns a function and menu items that cancel runs of a thread. If one of the runs cannot be cancelled, none of them is cancelled. */
export function useCancel(thread_id: string) {
  const client = useQueryClient();
  const cancel = async (run_ids: readonly string[], action: CancelAction) => {
    try {
      const [only, ...others] = run_ids;
      if (others.length === 0) await send("POST", `/threads/${thread_id}/runs/${only}/cancel`, { query: { action } });
      else await api.post("/runs/cancel", { thread_id, run_ids }, { query: { action } });
      await client.invalidateQueries({ queryKey: threadKey(thread_id) });
    } catch (error) {
      toast((error as Error).message, { error: true });
    }
  };
  const items = (run_ids: readonly string[]): MenuItem[] =>
    CANCEL_ACTIONS.map(({ action, label, hint }) => ({
      label,
      hint,
      danger: action === "rollback",
      onSelect: () => void cancel(run_ids, action),
    }));
  return { cancel, items };
}
