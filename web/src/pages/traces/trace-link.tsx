import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ListTree } from "lucide-react";
import type { ListedRun } from "../../../../src/experiments/contract/traces/app-traces.ts";
import { useMay } from "../../api/session.ts";
import { tracedRunsQuery } from "./queries.ts";

const COMPLETE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MAX_IDS = 100;

/**
 * Returns the given runs that have a trace, by ID. Empty if the user has no access to traces.
 *
 * @param state a value whose change causes a refetch, because a run may now have a trace
 */
export function useTracedRuns(run_ids: readonly string[], state = ""): ReadonlyMap<string, ListedRun> {
  const may = useMay("experiments") === true;
  const ids = run_ids.filter((id) => COMPLETE_ID.test(id)).slice(0, MAX_IDS);
  const { data } = useQuery({ ...tracedRunsQuery(ids, state), enabled: may && ids.length > 0 });
  return new Map(data?.map((run) => [run.id, run]));
}

/** Link to the trace of a run. Renders nothing if the run has no trace, or if the user has no access to traces. */
export function RunTraceLink({ run_id, state, label }: { run_id: string; state?: string; label?: string }) {
  return <TraceLink run={useTracedRuns([run_id], state).get(run_id)} label={label} />;
}

export function TraceLink({ run, label = "Trace" }: { run: ListedRun | undefined; label?: string }) {
  if (!run) return null;
  return (
    <Link
      to="/traces/$id"
      params={{ id: run.trace_id }}
      search={run.id === run.trace_id ? {} : { run: run.id }}
      className="inline-flex items-center gap-1 whitespace-nowrap rounded text-accent-text text-table hover:underline"
    >
      <ListTree size={13} aria-hidden /> {label}
    </Link>
  );
}
