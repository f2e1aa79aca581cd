import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Dataset } from "../../../../src/experiments/contract/datasets.ts";
import type { Session } from "../../../../src/experiments/contract/sessions.ts";
import { useKeys } from "../../frame/keys.ts";
import { Input } from "../../ui/field.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Table } from "../../ui/table.tsx";
import { ChosenBar } from "./chosen-bar.tsx";
import { columnsOf, sorted } from "./experiments-columns.tsx";
import { metricsOf } from "./metrics.ts";
import { keysQuery, MAX_SESSIONS, sessionsQuery } from "./queries.ts";
import { type DatasetSearch, datasetRoute } from "./routes.ts";
import { sortOf, sortText } from "./sort.ts";
import { Trends } from "./trends.tsx";
import { useBaseline } from "./use-baseline.ts";

const USUAL = "-start";

/** The experiments of a dataset: how they went over time, and a row for each. */
export function ExperimentsTab({ dataset }: { dataset: Dataset }) {
  const { data: sessions, error, refetch } = useQuery(sessionsQuery(dataset.id));
  const { data: configs } = useQuery(keysQuery);
  const metrics = useMemo(() => metricsOf(sessions ?? [], configs), [sessions, configs]);
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!sessions) return <SkeletonRows label="Fetching the experiments" rows={10} />;
  if (sessions.length === 0) return <NoExperiments dataset={dataset} />;
  return (
    <>
      <Trends dataset={dataset} sessions={sessions} metrics={metrics} />
      <List dataset={dataset} sessions={sessions} metrics={metrics} />
    </>
  );
}

function List({
  dataset,
  sessions,
  metrics,
}: {
  dataset: Dataset;
  sessions: readonly Session[];
  metrics: ReturnType<typeof metricsOf>;
}) {
  const search = datasetRoute.useSearch();
  const navigate = datasetRoute.useNavigate();
  const setBaseline = useBaseline(dataset.id);
  const [at, setAt] = useState<string>();
  const { q = "", sort: given } = search;
  const sort = sortOf(given, USUAL);
  const go = (changed: DatasetSearch) =>
    void navigate({ params: { id: dataset.id }, search: { ...search, ...changed }, replace: true });
  const chosen = useMemo(() => chosenOf(search.chosen, sessions), [search.chosen, sessions]);
  const toggle = (id: string) => {
    const ids = chosen.has(id) ? [...chosen].filter((each) => each !== id) : [...chosen, id];
    go({ chosen: ids.join(",") || undefined });
  };
  const choose = (ids: readonly string[]) => go({ chosen: ids.join(",") || undefined });
  const rows = useMemo(() => {
    const named = sessions.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()));
    return sorted(named, metrics, sortOf(given, USUAL));
  }, [sessions, metrics, q, given]);
  const baseline = dataset.baseline_experiment_id;
  useKeys({
    x: { does: "Choose the experiment for comparison, or not", run: () => at && toggle(at) },
    b: { does: "Make the experiment the baseline", run: () => at && void setBaseline(at === baseline ? null : at) },
  });
  return (
    <>
      <div className="flex min-h-12 flex-wrap items-center gap-2 border-line border-b px-6 py-2 max-sm:px-4">
        <Input
          type="search"
          aria-label="Search experiments by name"
          placeholder="Search experiments"
          className="max-w-60"
          value={q}
          onChange={(event) => go({ q: event.target.value || undefined })}
        />
        {sessions.length >= MAX_SESSIONS && (
          <span className="text-table text-text-3">The newest 1,000 experiments are shown.</span>
        )}
        <ChosenBar dataset={dataset} sessions={sessions} chosen={chosen} onClear={() => go({ chosen: undefined })} />
      </div>
      <Table
        name="Experiments"
        rows={rows}
        columns={columnsOf(metrics, { chosen, baseline, toggle, all: rows.map(({ id }) => id), choose })}
        keyOf={({ id }) => id}
        sort={sort}
        onSort={(wanted) => go({ sort: sortText(wanted, USUAL) })}
        selected={at}
        onSelect={setAt}
        onOpen={({ id }) => void navigate({ to: "/experiments/sessions/$id", params: { id } })}
        className="flex-1"
        empty={<EmptyState title={`No experiment has “${q}” in its name`} />}
      />
    </>
  );
}

/** Those of the address that are there. */
function chosenOf(text: string | undefined, sessions: readonly Session[]): ReadonlySet<string> {
  const known = new Set(sessions.map(({ id }) => id));
  return new Set((text?.split(",") ?? []).filter((id) => known.has(id)));
}

const NoExperiments = ({ dataset: { id, name, externally_managed } }: { dataset: Dataset }) => (
  <EmptyState
    title="No experiments on this dataset yet"
    command={
      externally_managed
        ? `npx threadmill experiments upload results.jsonl --dataset-id ${id}`
        : `npx threadmill experiments run --dataset ${inShell(name)} --assistant agent`
    }
  >
    {externally_managed
      ? "Drop a JSON file with results here, or use the command line:"
      : "Try an assistant of this server on its examples:"}
  </EmptyState>
);

const inShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
