import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { API_URL } from "../../../api/request.ts";
import { useKeys } from "../../../frame/keys.ts";
import { DebouncedInput } from "../../../ui/form/debounced-input.tsx";
import { shellQuote } from "../../../ui/format.ts";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { toggled } from "../../../ui/table/selection.tsx";
import { Table } from "../../../ui/table/table.tsx";
import { MAX_EXPERIMENTS } from "../compare/selected-experiments.ts";
import { metricsOf } from "../metrics.ts";
import { keysQuery, MAX_SESSIONS, sessionsQuery } from "../queries.ts";
import { type DatasetSearch, datasetRoute, sortOf, sortText } from "../routes.ts";
import { useBaseline } from "../use-baseline.ts";
import { columnsOf, sorted } from "./experiments-columns.tsx";
import { SelectionBar } from "./selection-bar.tsx";
import { Trends } from "./trends.tsx";

const DEFAULT_SORT = "-start";

const LIMIT = { max: MAX_EXPERIMENTS, reason: `A comparison can have at most ${MAX_EXPERIMENTS} experiments` };
const keyOf = ({ id }: Session): string => id;

export function ExperimentsTab({ dataset }: { dataset: Dataset }) {
  const { data: sessions, error, refetch } = useQuery(sessionsQuery(dataset.id));
  const { data: configs } = useQuery(keysQuery);
  const metrics = useMemo(() => metricsOf(sessions ?? [], configs), [sessions, configs]);
  if (error && !sessions) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!sessions) return <SkeletonRows label="Loading experiments" rows={10} />;
  if (sessions.length === 0) return <NoExperiments dataset={dataset} />;
  return (
    <>
      <Trends dataset={dataset} sessions={sessions} metrics={metrics} />
      <ExperimentsTable dataset={dataset} sessions={sessions} metrics={metrics} />
    </>
  );
}

function ExperimentsTable({
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
  const [focused_id, setFocusedId] = useState<string>();
  const { q = "", sort: given } = search;
  const sort = sortOf(given, DEFAULT_SORT);
  const go = (changed: DatasetSearch) =>
    void navigate({ params: { id: dataset.id }, search: { ...search, ...changed }, replace: true });
  const chosen = useMemo(() => chosenOf(search.chosen, sessions), [search.chosen, sessions]);
  const choose = (ids: readonly string[]) => go({ chosen: ids.join(",") || undefined });
  const rows = useMemo(() => {
    const named = sessions.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()));
    return sorted(named, metrics, sortOf(given, DEFAULT_SORT));
  }, [sessions, metrics, q, given]);
  const baseline = dataset.baseline_experiment_id;
  useKeys({
    x: { does: "Select experiment", run: () => focused_id && choose(toggled(chosen, focused_id)) },
    b: {
      does: "Set as baseline",
      run: () => focused_id && void setBaseline(focused_id === baseline ? null : focused_id),
    },
  });
  return (
    <>
      <div className="flex min-h-12 flex-wrap items-center gap-2 border-line border-b px-6 py-2 max-sm:px-4">
        <DebouncedInput
          type="search"
          aria-label="Search experiments by name"
          placeholder="Search experiments"
          className="max-w-60"
          value={q}
          onChange={(text) => go({ q: text })}
        />
        {sessions.length >= MAX_SESSIONS && (
          <span className="text-table text-text-3">Showing the newest 1,000 experiments</span>
        )}
        <SelectionBar dataset={dataset} sessions={sessions} chosen={chosen} onClear={() => go({ chosen: undefined })} />
      </div>
      <Table
        name="Experiments"
        rows={rows}
        columns={columnsOf(
          metrics,
          { chosen, choose, rows, keyOf, nameOf: ({ name }) => name, limit: LIMIT },
          baseline,
        )}
        keyOf={keyOf}
        sort={sort}
        onSort={(order) => go({ sort: sortText(order, DEFAULT_SORT) })}
        selected={focused_id}
        onSelect={setFocusedId}
        onOpen={({ id }) => void navigate({ to: "/experiments/sessions/$id", params: { id } })}
        className="flex-1"
        empty={<EmptyState title={`No experiments match “${q}”`} />}
      />
    </>
  );
}

function chosenOf(text: string | undefined, sessions: readonly Session[]): ReadonlySet<string> {
  const known = new Set(sessions.map(({ id }) => id));
  return new Set((text?.split(",") ?? []).filter((id) => known.has(id)));
}

const NoExperiments = ({ dataset: { id, name, externally_managed } }: { dataset: Dataset }) => (
  <EmptyState
    title="No experiments yet"
    command={
      externally_managed
        ? `npx threadmill experiments upload results.jsonl --dataset-id ${id} --url ${API_URL}`
        : `npx threadmill experiments run --dataset ${shellQuote(name)} --assistant agent --url ${API_URL}`
    }
  >
    {externally_managed
      ? "Drop a JSON, JSONL or CSV file with results here, or use the CLI:"
      : "Run one of this server's assistants on the examples:"}
  </EmptyState>
);
