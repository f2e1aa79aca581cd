import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api } from "../../../api/request.ts";
import { useMay } from "../../../api/session.ts";
import { useTarget } from "../../../api/target.ts";
import { Checkbox } from "../../../ui/form/field.tsx";
import { count } from "../../../ui/format.ts";
import { deleteThreads } from "../../threads/queries.ts";

/** Metadata of the threads that an experiment of the page keeps: one for each example. */
export const keptBy = (session_id: string) => ({ experiment_id: session_id });

/** Maximum number of threads that one search returns. */
const PAGE = 1_000;

/**
 * Offers to delete the kept threads of experiments together with these.
 *
 * @param session_ids empty while nothing is to be deleted
 */
export function useKeptThreads(session_ids: readonly string[]): {
  choice: ReactNode;
  remove(signal: AbortSignal): Promise<void>;
} {
  const client = useQueryClient();
  const [isChosen, setChosen] = useState(false);
  const may = useMay("agents") === true;
  // Experiments of the page run on this server.
  const isServer = useTarget() === undefined;
  const { data: total = 0 } = useQuery({
    queryKey: ["kept threads", session_ids],
    queryFn: async ({ signal }) => {
      const counts = session_ids.map((id) => api.post<number>("/threads/count", { metadata: keptBy(id) }, { signal }));
      return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0);
    },
    enabled: may && isServer && session_ids.length > 0,
  });
  return {
    choice: total > 0 && (
      <span className="mt-3 block text-text">
        <Checkbox
          label={
            total === 1
              ? "Also delete the thread that was kept for an example"
              : `Also delete the ${count(total)} threads that were kept for examples`
          }
          checked={isChosen}
          onChange={({ target }) => setChosen(target.checked)}
        />
      </span>
    ),
    async remove(signal) {
      if (!isChosen || total === 0) return;
      for (const id of session_ids)
        while (!signal.aborted) {
          const query = { metadata: keptBy(id), select: ["thread_id"], limit: PAGE };
          const found = await api.post<{ thread_id: string }[]>("/threads/search", query);
          if (found.length === 0) break;
          const ids = found.map(({ thread_id }) => thread_id);
          // If none of them can be deleted, a further search would find the same.
          if ((await deleteThreads(client, ids, { signal })) === 0) break;
        }
    },
  };
}
