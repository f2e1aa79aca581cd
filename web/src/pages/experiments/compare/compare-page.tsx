import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { Page } from "../../../frame/header.tsx";
import { useKeys } from "../../../frame/keys.ts";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Candidates, ExperimentsBar } from "./experiments-bar.tsx";
import { ExportMenu, useExport } from "./export-menu.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { Matrix } from "./matrix.tsx";
import { datasetQuery, rowsQuery } from "./queries.ts";
import { compareRoute } from "./route.ts";
import { RowDetail } from "./row-detail.tsx";
import { RowsTable } from "./rows-table.tsx";
import { joined, listOf, narrowingOf, type Search } from "./search.ts";
import type { Slot } from "./slots.ts";
import { useRows } from "./use-rows.ts";
import { Verdict } from "./verdict.tsx";
import { useView, type View } from "./view.ts";

/** Experiments of a dataset side by side: what differs, whether that is sure, and where. All that is seen is in the address. */
export function ComparePage() {
  const { id } = compareRoute.useParams();
  const search = compareRoute.useSearch();
  const change = useChange();
  const dataset = useQuery(datasetQuery(id));
  const { view, ids, error, retry } = useView(id, search);
  // The first rows are fetched beside what is above them, not after it.
  useQuery({ ...rowsQuery(id, narrowingOf(search, ids), 0), enabled: ids.length > 0 });
  const isEmpty = view?.shown.length === 0;
  return (
    <Page
      title="Compare"
      crumbs={[
        { label: "Experiments", to: "/experiments" },
        { label: dataset.data?.name ?? "Dataset", to: `/experiments/datasets/${id}` },
      ]}
      actions={view && <ExperimentsBar view={view} search={search} onChange={change} />}
      fill
    >
      {error && <ErrorState error={error} retry={retry} />}
      {!view && !error && <SkeletonRows label="Fetching the experiments and what they add up to" height={56} />}
      {view && isEmpty && (
        <EmptyState
          title="Choose experiments to compare"
          action={
            <div className="text-left">
              <Candidates dataset_id={id} chosen={listOf(search.experiments)} onChange={change} />
            </div>
          }
        >
          {view.missing > 0 && <p>Those in the address are gone, or belong to another dataset. </p>}
          The first one is the baseline that the others are compared with.
        </EmptyState>
      )}
      {view && !isEmpty && <Compared view={view} search={search} onChange={change} />}
    </Page>
  );
}

/** Changes the address. What is typed letter by letter, and what j and k go through, leaves no trail. */
function useChange() {
  const navigate = compareRoute.useNavigate();
  return useCallback(
    (patch: Partial<Search>, options: { replace?: boolean } = {}) =>
      void navigate({ search: (before: Search) => ({ ...before, ...patch }), replace: options.replace }),
    [navigate],
  );
}

function Compared({
  view,
  search,
  onChange,
}: {
  view: View;
  search: Search;
  onChange(patch: Partial<Search>, options?: { replace?: boolean }): void;
}) {
  const ids = view.shown.map(({ id }) => id);
  const asked = JSON.stringify(narrowingOf(search, ids));
  const narrowing = useMemo(() => JSON.parse(asked) as ReturnType<typeof narrowingOf>, [asked]);
  const rows = useRows(view.dataset_id, narrowing);
  const [selected, setSelected] = useState(search.row);
  const [lastFocused, setFocused] = useState<string>();
  // The second one at first: the baseline can neither be hidden nor made the baseline.
  const focused = lastFocused !== undefined && ids.includes(lastFocused) ? lastFocused : (ids[1] ?? (ids[0] as string));
  const { experiments, hidden } = search;
  const actions = useMemo(
    () => ({
      onFocus: setFocused,
      onBaseline: (id: string) => onChange({ baseline: id }),
      onHide: (id: string) => onChange({ hidden: joined([...listOf(hidden), id]) }),
      onRemove: (id: string) => onChange({ experiments: joined(listOf(experiments).filter((other) => other !== id)) }),
    }),
    [onChange, experiments, hidden],
  );
  const exporting = useExport(view, search, narrowing);
  const go = (by: number) => setFocused(ids[Math.min(Math.max(ids.indexOf(focused) + by, 0), ids.length - 1)]);
  useKeys({
    h: { does: "Experiment before", run: () => go(-1) },
    l: { does: "Next experiment", run: () => go(1) },
    b: { does: "Make the experiment the baseline", run: () => actions.onBaseline(focused) },
    x: { does: "Hide the experiment", run: () => focused !== ids[0] && actions.onHide(focused) },
    e: { does: "Export what is seen as CSV", run: () => void exporting.start("csv") },
  });
  const open = ({ row }: Slot) => {
    setSelected(row?.example_id);
    if (row) onChange({ row: row.example_id }, { replace: search.row !== undefined });
  };
  const select = (slot: Slot) => (search.row === undefined ? setSelected(slot.row?.example_id) : open(slot));
  return (
    <>
      <Verdict view={view} search={search} onFocus={setFocused} onChange={onChange} />
      <Matrix view={view} search={search} focused={focused} onChange={onChange} {...actions} />
      <FilterBar
        view={view}
        search={search}
        focused={focused}
        total={rows.total}
        onChange={onChange}
        actions={<ExportMenu exporting={exporting} />}
      />
      <RowsTable
        view={view}
        search={search}
        rows={rows}
        focused={focused}
        selected={selected}
        onSelect={select}
        onOpen={open}
        onChange={onChange}
      />
      <RowDetail
        view={view}
        search={search}
        rows={rows}
        narrowing={narrowing}
        onGo={open}
        onChange={onChange}
        onClose={() => onChange({ row: undefined })}
      />
    </>
  );
}
