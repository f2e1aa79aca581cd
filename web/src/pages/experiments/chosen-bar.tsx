import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Dataset } from "../../../../src/experiments/contract/datasets.ts";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { count } from "../../ui/format.ts";
import { toast } from "../../ui/toast.tsx";
import { compareSearch } from "./compare-link.ts";
import { byAge } from "./metrics.ts";
import { EXPERIMENTS } from "./queries.ts";

/** What can be done with the experiments that are chosen. */
export function ChosenBar({
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
  const compared = comparedOf(dataset, sessions, chosen);
  return (
    <div className="ml-auto flex items-center gap-2">
      {chosen.size > 0 && (
        <>
          <span className="text-table text-text-2">{count(chosen.size)} chosen</span>
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
          {chosen.size === 0 ? "Tick two or more to compare them" : "Tick one more to compare them"}
        </span>
      )}
      {compared ? (
        <Button look="primary" asChild>
          <Link
            to="/experiments/datasets/$id/compare"
            params={{ id: dataset.id }}
            search={compareSearch(compared, compared[0])}
          >
            {chosen.size === 1 ? "Compare with the baseline" : `Compare ${compared.length}`}
          </Link>
        </Button>
      ) : (
        <Button disabled title="Tick two or more experiments.">
          Compare
        </Button>
      )}
      <Confirm
        open={isDeleting}
        onClose={() => setDeleting(false)}
        title={chosen.size === 1 ? "Delete one experiment?" : `Delete ${count(chosen.size)} experiments?`}
        action="Delete"
        onConfirm={async () => {
          try {
            for (const id of chosen) await api.delete(`/api/v1/sessions/${id}`);
          } finally {
            // Some may be gone when one of them could not be deleted.
            await client.invalidateQueries({ queryKey: EXPERIMENTS });
          }
          onClear();
          toast(chosen.size === 1 ? "The experiment is deleted." : `${count(chosen.size)} experiments are deleted.`);
        }}
      >
        Their runs and feedback go with them. The examples stay. This cannot be undone.
      </Confirm>
    </div>
  );
}

/**
 * What is compared, the baseline first: the dataset's, when it is among those that are chosen or when there is but one, and otherwise
 * the oldest. Undefined when there is nothing to compare.
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
