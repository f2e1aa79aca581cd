import { useQuery } from "@tanstack/react-query";
import { Navigate } from "@tanstack/react-router";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { api } from "../../../api/request.ts";
import { Page } from "../../../frame/header.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { runRoute } from "../page.ts";
import { tracedRunsQuery } from "../queries.ts";

/** Opens the trace of a run with the run selected. For an uploaded run, which has no trace, opens its experiment. */
export function RunRedirect() {
  const { id } = runRoute.useParams();
  const traced = useQuery(tracedRunsQuery([id]));
  const uploaded = useQuery({
    queryKey: ["uploaded run", id],
    queryFn: ({ signal }) => api.get<ExperimentRun>(`/api/v1/runs/${encodeURIComponent(id)}`, { signal }),
    enabled: traced.data?.length === 0,
  });
  const run = traced.data?.[0];
  if (run)
    return (
      <Navigate
        to="/traces/$id"
        params={{ id: run.trace_id }}
        search={run.id === run.trace_id ? {} : { run: run.id }}
        replace
      />
    );
  if (uploaded.data)
    return (
      <Navigate to="/experiments/sessions/$id" params={{ id: uploaded.data.session_id }} search={{ run: id }} replace />
    );
  const error = traced.error ?? uploaded.error;
  return (
    <Page title="Run">
      {error ? (
        <ErrorState error={error} retry={() => void (traced.error ? traced : uploaded).refetch()} />
      ) : (
        <SkeletonRows label="Loading run" rows={6} />
      )}
    </Page>
  );
}
