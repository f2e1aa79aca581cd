import { useQuery } from "@tanstack/react-query";
import { Page } from "../../../frame/header.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Badge, Status } from "../../../ui/status.tsx";
import { publicRoute, type TraceSearch } from "../page.ts";
import { traceQuery } from "../queries.ts";
import { TraceView } from "./trace-view.tsx";

/** Read-only page of a shared trace, for users without an API key. It has no links to other pages. */
export function PublicPage() {
  const { token } = publicRoute.useParams();
  const search = publicRoute.useSearch();
  const navigate = publicRoute.useNavigate();
  const source = { trace_id: token, token };
  const { data: trace, error, refetch } = useQuery(traceQuery(source));
  return (
    <Page
      title={trace?.runs[0]?.name || "Shared trace"}
      fill
      beside={
        trace && (
          <>
            <Status status={trace.status} />
            <Badge>shared</Badge>
          </>
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
              params: { token },
              search: (before: TraceSearch) => ({ ...before, ...changed }),
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
