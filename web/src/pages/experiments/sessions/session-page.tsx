import { useQuery } from "@tanstack/react-query";
import { Link, Navigate } from "@tanstack/react-router";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { Page } from "../../../frame/header.tsx";
import { Button } from "../../../ui/button.tsx";
import { Id } from "../../../ui/code-block.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Badge } from "../../../ui/status.tsx";
import { hasTracesQuery } from "../../traces/queries.ts";
import { compareSearch } from "../compare/route.ts";
import { byAge } from "../metrics.ts";
import { datasetQuery, sessionQuery, sessionsQuery } from "../queries.ts";
import { sessionRoute } from "../routes.ts";
import { RunSheet } from "./run-sheet.tsx";
import { useScoreKeys } from "./scores.tsx";
import { SessionMenu } from "./session-menu.tsx";
import { SessionRows } from "./session-rows.tsx";
import { SessionStats } from "./session-stats.tsx";

const CRUMBS = [{ label: "Experiments", to: "/experiments" }];

export function SessionPage() {
  const { id } = sessionRoute.useParams();
  const search = sessionRoute.useSearch();
  const navigate = sessionRoute.useNavigate();
  const { data: session, error, refetch } = useQuery(sessionQuery(id));
  const keys = useScoreKeys(session);
  const dataset_id = session?.reference_dataset_id ?? undefined;
  const { data: dataset } = useQuery({ ...datasetQuery(dataset_id ?? ""), enabled: dataset_id !== undefined });
  if (error && !session)
    return (
      <Page title="Experiment" crumbs={CRUMBS}>
        <ErrorState error={error} retry={() => void refetch()} />
      </Page>
    );
  // A session without a dataset is a project of traces.
  if (session && !dataset_id) {
    if (search.run) return <Navigate to="/runs/$id" params={{ id: search.run }} replace />;
    return <Navigate to="/traces/projects/$id" params={{ id }} search={{}} replace />;
  }
  const isBaseline = dataset?.baseline_experiment_id === id;
  const crumbs = dataset_id
    ? [...CRUMBS, { label: dataset?.name ?? "Dataset", to: `/experiments/datasets/${dataset_id}` }]
    : CRUMBS;
  return (
    <Page
      title={session?.name ?? "Experiment"}
      crumbs={crumbs}
      beside={
        <>
          {isBaseline && <Badge>baseline</Badge>}
          <Id id={id} />
        </>
      }
      fill
      actions={
        session &&
        dataset_id && (
          <>
            <TracesButton session_id={id} />
            <CompareButton session={session} dataset_id={dataset_id} />
            <SessionMenu
              session={session}
              isBaseline={isBaseline}
              onDeleted={() => navigate({ to: "/experiments/datasets/$id", params: { id: dataset_id } })}
            />
          </>
        )
      }
    >
      {session && dataset_id ? (
        <>
          <SessionStats session={session} />
          <SessionRows session={session} dataset_id={dataset_id} keys={keys} />
        </>
      ) : (
        <SkeletonRows label="Loading experiment" rows={10} />
      )}
      <RunSheet
        id={search.run}
        keys={keys}
        onClose={() => void navigate({ params: { id }, search: { ...search, run: undefined }, replace: true })}
      />
    </Page>
  );
}

/** Link to the traces of an experiment. Renders nothing for an uploaded experiment, which has no traces. */
function TracesButton({ session_id }: { session_id: string }) {
  const { data } = useQuery(hasTracesQuery(session_id));
  if (!data) return null;
  return (
    <Button asChild>
      <Link to="/traces/projects/$id" params={{ id: session_id }}>
        Traces
      </Link>
    </Button>
  );
}

/** Compares the experiment with the dataset's previous experiment, or with the next experiment if this is the first. */
function CompareButton({ session, dataset_id }: { session: Session; dataset_id: string }) {
  const { data: sessions } = useQuery(sessionsQuery(dataset_id));
  const inOrder = [...(sessions ?? [])].sort(byAge);
  const at = inOrder.findIndex(({ id }) => id === session.id);
  const before = inOrder[at - 1];
  const after = inOrder[at + 1];
  const [baseline, other] = before ? [before, session] : [session, after];
  if (at < 0 || !other) return null;
  return (
    <Button asChild>
      <Link
        to="/experiments/datasets/$id/compare"
        params={{ id: dataset_id }}
        search={compareSearch([baseline.id, other.id], baseline.id)}
        title={(before ?? other).name}
      >
        Compare with {before ? "previous" : "next"}
      </Link>
    </Button>
  );
}
