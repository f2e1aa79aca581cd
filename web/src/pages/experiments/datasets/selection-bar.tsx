import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { count } from "../../../ui/format.ts";
import { Confirm } from "../../../ui/overlay/confirm.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { compareSearch } from "../compare/route.ts";
import { byAge } from "../metrics.ts";
import { EXPERIMENTS } from "../queries.ts";
import { useKeptThreads } from "../sessions/kept-threads.tsx";

export function SelectionBar({
  dataset,
  sessions,
  chosen,
  onClear,
}: {
  dataset: Dataset;
  sessions: readonly Session[];
  chosen: ReadonlySet<string>;
  onClear(): void;
}) {
  const client = useQueryClient();
  const [isDeleting, setDeleting] = useState(false);
  const threads = useKeptThreads(isDeleting ? [...chosen] : []);
  const compared = comparedOf(dataset, sessions, chosen);
  return (
    <div className="ml-auto flex items-center gap-2">
      {chosen.size > 0 && (
        <>
          <span className="text-table text-text-2">{count(chosen.size)} selected</span>
          <Button look="quiet" onClick={onClear}>
            Clear
          </Button>
          <Button look="danger" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        </>
      )}
      {!compared && sessions.length > 1 && (
        <span className="text-table text-text-2">
          {chosen.size === 0 ? "Select two or more experiments to compare" : "Select another experiment to compare"}
        </span>
      )}
      {compared ? (
        <Button look="primary" asChild>
          <Link
            to="/experiments/datasets/$id/compare"
            params={{ id: dataset.id }}
            search={compareSearch(compared, compared[0])}
          >
            {chosen.size === 1 ? "Compare with baseline" : `Compare ${compared.length}`}
          </Link>
        </Button>
      ) : (
        <Button disabled title="Select two or more experiments">
          Compare
        </Button>
      )}
      <Confirm
        open={isDeleting}
        onClose={() => setDeleting(false)}
        title={chosen.size === 1 ? "Delete 1 experiment?" : `Delete ${count(chosen.size)} experiments?`}
        action="Delete"
        onConfirm={async (signal) => {
          let deleted = 0;
          try {
            await threads.remove(signal);
            for (const id of chosen) {
              if (signal.aborted) break;
              await api.delete(`/api/v1/sessions/${id}`);
              deleted += 1;
            }
          } finally {
            // Also refetches after an error, because earlier deletions may have succeeded.
            await client.invalidateQueries({ queryKey: EXPERIMENTS });
          }
          if (!signal.aborted) onClear();
          toast(deleted === 1 ? "Experiment deleted" : `${count(deleted)} experiments deleted`);
        }}
      >
        The runs and feedback of the selected experiments are deleted. The dataset's examples are kept. This cannot be
        undone.
        {threads.choice}
      </Confirm>
    </div>
  );
}

/**
 * Returns the IDs of the selected experiments, oldest first, except that the dataset's baseline is first. If only one other experiment is
 * selected, the baseline is added. Returns undefined if there is nothing to compare.
 */
function comparedOf(
  { baseline_experiment_id: baseline }: Dataset,
  sessions: readonly Session[],
  chosen: ReadonlySet<string>,
): string[] | undefined {
  const ids = sessions
    .filter(({ id }) => chosen.has(id))
    .sort(byAge)
    .map(({ id }) => id);
  if (ids.length === 0) return undefined;
  if (baseline && (ids.length === 1 || chosen.has(baseline))) ids.unshift(baseline);
  const unique = [...new Set(ids)];
  return unique.length < 2 ? undefined : unique;
}
