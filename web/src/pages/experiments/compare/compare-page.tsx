import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { Page } from "../../../frame/header.tsx";
import { useKeys } from "../../../frame/keys.ts";
import { isNarrow, useMedia } from "../../../ui/layout.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { usePreviewKeys } from "../preview.ts";
import { datasetQuery } from "../queries.ts";
import { RowDetail } from "./detail/row-detail.tsx";
import { Candidates, ExperimentsBar } from "./experiments-bar.tsx";
import { ExportMenu, useExport } from "./export-menu.tsx";
import { FilterBar } from "./filters/filter-bar.tsx";
import { Matrix } from "./matrix/matrix.tsx";
import { rowsQuery } from "./queries.ts";
import { compareRoute } from "./route.ts";
import { RowsTable } from "./rows/rows-table.tsx";
import type { Slot } from "./rows/slots.ts";
import { useRows } from "./rows/use-rows.ts";
import { joined, listOf, narrowingOf, type Search } from "./search.ts";
import { Verdict } from "./verdict.tsx";
import { useView, type View } from "./view.ts";

/**
 * Compares a dataset's experiments: differences, statistical significance and the examples behind each number. The URL contains the
 * complete view.
 */
export function ComparePage() {
  const { id } = compareRoute.useParams();
  const search = compareRoute.useSearch();
  const change = useChange();
  const dataset = useQuery(datasetQuery(id));
  const { view, ids, error, retry } = useView(id, search);
  const previews = usePreviewKeys(id);
  // Fetches the first rows in parallel with the statistics.
  useQuery({ ...rowsQuery(id, narrowingOf(search, ids, previews), 0), enabled: ids.length > 0 });
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
      {!view && !error && <SkeletonRows label="Loading experiments and statistics" height={56} />}
      {view && isEmpty && (
        <EmptyState
          title="Select experiments to compare"
          action={
            <div className="text-left">
              <Candidates dataset_id={id} chosen={listOf(search.experiments)} onChange={change} />
            </div>
          }
        >
          {view.missing > 0 && <p>At least one experiment in the URL was deleted or belongs to another dataset. </p>}
          The first experiment is the baseline.
        </EmptyState>
      )}
      {view && !isEmpty && <Comparison view={view} search={search} onChange={change} />}
    </Page>
  );
}

/** Updates the view in the URL. Typing, j and k replace the current browser history entry instead of adding entries. */
function useChange() {
  const navigate = compareRoute.useNavigate();
  return useCallback(
    (patch: Partial<Search>, options: { replace?: boolean } = {}) =>
      void navigate({ search: (before: Search) => ({ ...before, ...patch }), replace: options.replace }),
    [navigate],
  );
}

function Comparison({
  view,
  search,
  onChange,
}: {
  view: View;
  search: Search;
  onChange(patch: Partial<Search>, options?: { replace?: boolean }): void;
}) {
  const ids = view.shown.map(({ id }) => id);
  const narrowing_json = JSON.stringify(narrowingOf(search, ids, usePreviewKeys(view.dataset_id)));
  const narrowing = useMemo(() => JSON.parse(narrowing_json) as ReturnType<typeof narrowingOf>, [narrowing_json]);
  const rows = useRows(view.dataset_id, narrowing);
  const [selected, setSelected] = useState(search.row);
  const [widths_json, setWidths] = useState<string>();
  const onWidths = useCallback((given: readonly number[] | undefined) => setWidths(given && JSON.stringify(given)), []);
  const [lastFocused, setFocused] = useState<string>();
  // The default is the second experiment, because the shortcuts b and x have no effect on the baseline.
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
    h: { does: "Previous experiment", run: () => go(-1) },
    l: { does: "Next experiment", run: () => go(1) },
    b: { does: "Set as baseline", run: () => actions.onBaseline(focused) },
    x: { does: "Hide experiment", run: () => focused !== ids[0] && actions.onHide(focused) },
    e: { does: "Export current view (CSV)", run: () => void exporting.start("csv") },
  });
  const open = ({ row }: Slot) => {
    setSelected(row?.example_id);
    if (row) onChange({ row: row.example_id }, { replace: search.row !== undefined });
  };
  const select = (slot: Slot) => (search.row === undefined ? setSelected(slot.row?.example_id) : open(slot));
  const narrow = useMedia(isNarrow);
  const [area, setArea] = useState<HTMLElement | null>(null);
  return (
    // On a phone, all parts scroll together.
    <div ref={setArea} className="flex min-h-0 flex-1 flex-col max-sm:relative max-sm:block max-sm:overflow-y-auto">
      <div className="flex min-h-0 flex-1 flex-col max-sm:block">
        <Verdict view={view} search={search} onFocus={setFocused} onChange={onChange} />
        <Matrix
          view={view}
          search={search}
          focused={focused}
          widths_json={widths_json}
          onChange={onChange}
          {...actions}
        />
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
          onWidths={onWidths}
          scroller={narrow ? area : undefined}
        />
      </div>
      <RowDetail
        view={view}
        search={search}
        rows={rows}
        narrowing={narrowing}
        onGo={open}
        onChange={onChange}
        onClose={() => onChange({ row: undefined })}
      />
    </div>
  );
}
