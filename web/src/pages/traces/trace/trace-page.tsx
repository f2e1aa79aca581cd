import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Page } from "../../../frame/header.tsx";
import { Button } from "../../../ui/button.tsx";
import { Id } from "../../../ui/code-block.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Status } from "../../../ui/status.tsx";
import { type TraceSearch, traceRoute } from "../page.ts";
import { projectQuery, traceQuery } from "../queries.ts";
import { TraceView } from "./trace-view.tsx";

/** A trace: the tree of its runs with their times, and the selected run. */
export function TracePage() {
  const { id } = traceRoute.useParams();
  const search = traceRoute.useSearch();
  const navigate = traceRoute.useNavigate();
  const source = { trace_id: id };
  const { data: trace, error, refetch } = useQuery(traceQuery(source));
  const session_id = trace?.session_id;
  const project = useQuery({
    ...projectQuery(session_id ?? ""),
    enabled: session_id !== undefined,
    refetchInterval: false,
  });
  const crumbs = [
    { label: "Traces", to: "/traces" },
    ...(session_id ? [{ label: project.data?.name ?? "Project", to: `/traces/projects/${session_id}` }] : []),
  ];
  const root = trace?.runs[0];
  return (
    <Page
      title={root?.name || "Trace"}
      crumbs={crumbs}
      fill
      beside={
        <>
          {trace && <Status status={trace.status} />}
          <Id id={id} />
        </>
      }
      actions={
        project.data?.reference_dataset_id && (
          <Button asChild>
            <Link to="/experiments/sessions/$id" params={{ id: project.data.id }}>
              Open experiment
            </Link>
          </Button>
        )
      }
    >
      {error && !trace ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : trace ? (
        <TraceView
          source={source}
          trace={trace}
          search={search}
          onChange={(changed) =>
            void navigate({
              params: { id },
              search: (before: TraceSearch) => ({ ...before, ...changed }),
              // The first selection adds a browser history entry, so that Back returns to the tree on a narrow screen.
              replace: changed.run === undefined || search.run !== undefined,
            })
          }
        />
      ) : (
        <SkeletonRows label="Loading trace" rows={12} />
      )}
    </Page>
  );
}
