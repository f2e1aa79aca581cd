import { useQueryClient } from "@tanstack/react-query";
import type { CancelAction, RunStatus } from "../../../../src/agent-server/contract/records.ts";
import { api, send } from "../../api/request.ts";
import type { MenuItem } from "../../ui/menu.tsx";
import { toast } from "../../ui/toast.tsx";
import { threadKey } from "./queries.ts";

export const isActive = ({ status }: { status: RunStatus }): boolean => status === "pending" || status === "running";

const SAYS: Record<CancelAction, { label: string; hint: string }> = {
  interrupt: { label: "Stop and keep", hint: "Stops the run and keeps the steps that it has made." },
  rollback: { label: "Stop and undo", hint: "Stops the run and deletes it with its steps, as if it had never been." },
};

/** Cancels runs of a thread: all that are named, or none. */
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
  /** The two ways, each with what it does. */
  const items = (run_ids: readonly string[]): MenuItem[] =>
    (["interrupt", "rollback"] as const).map((action) => ({
      ...SAYS[action],
      danger: action === "rollback",
      onSelect: () => void cancel(run_ids, action),
    }));
  return { cancel, items };
}
