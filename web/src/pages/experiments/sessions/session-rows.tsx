import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { ExampleWithRuns } from "../../../../../src/experiments/contract/comparison.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { Select } from "../../../ui/form/select.tsx";
import { count } from "../../../ui/format.ts";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Status } from "../../../ui/status.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { Table } from "../../../ui/table/table.tsx";
import type { Key } from "../compare/view.ts";
import { keysOf, latencyOf, runStats } from "../metrics.ts";
import { type PreviewKeys, previewOf, usePreviewKeys } from "../preview.ts";
import { PreviewPicker } from "../preview-picker.tsx";
import { rowsQuery } from "../queries.ts";
import { type SessionSearch, sessionRoute, sortOf, sortText } from "../routes.ts";
import { Scores } from "./scores.tsx";

type Run = ExampleWithRuns["runs"][number];

interface Row {
  example: ExampleWithRuns;
  run: Run;
  /** Position (1, 2, 3 ...) among the example's runs. Undefined if the example has only one run. */
  repetition?: number;
}

export function SessionRows({
  session,
  dataset_id,
  keys,
}: {
  session: Session;
  dataset_id: string;
  keys: readonly Key[];
}) {
  const search = sessionRoute.useSearch();
  const navigate = sessionRoute.useNavigate();
  const sort = search.sort ? sortOf(search.sort, "") : undefined;
  const previews = usePreviewKeys(dataset_id);
  const query = rowsQuery(dataset_id, session.id, {
    sort,
    onlyErrors: search.only === "errors",
    isWhole: previews.outputs !== undefined,
  });
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(query);
  const rows = useMemo(() => data?.pages.flat().flatMap(rowsOf), [data]);
  const columns = useMemo(() => columnsOf(keysOf([session], runStats), keys, previews), [session, keys, previews]);
  const go = (changed: SessionSearch) =>
    void navigate({ params: { id: session.id }, search: { ...search, ...changed }, replace: true });
  return (
    <>
      <div className="flex items-center gap-3 border-line border-b px-6 py-2 max-sm:px-4">
        <Select
          aria-label="Runs"
          value={search.only ?? "all"}
          options={[
            { value: "all", label: "All runs" },
            { value: "errors", label: "Errors only" },
          ]}
          onChange={(only) => go({ only: only === "errors" ? "errors" : undefined })}
        />
        <PreviewPicker dataset_id={dataset_id} />
        {rows && (
          <span className="ml-auto text-table text-text-3">
            {count(rows.length)}
            {/* The total number of runs is known only without the filter. */}
            {hasNextPage && (search.only === "errors" ? "+" : ` of ${count(session.run_count)}`)}{" "}
            {rows.length === 1 && !hasNextPage ? "run" : "runs"}
          </span>
        )}
      </div>
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : rows ? (
        <Table
          name="Runs of the experiment"
          rows={rows}
          columns={columns}
          rowHeight={56}
          keyOf={({ run }) => run.id}
          sort={sort}
          onSort={(chosen) => go({ sort: sortText(chosen, "") })}
          selected={search.run}
          onSelect={(run) => go({ run })}
          onOpen={({ run }) => go({ run: run.id })}
          onEnd={() => hasNextPage && !isFetchingNextPage && void fetchNextPage()}
          className="flex-1"
          empty={<EmptyState title={search.only ? "No failed runs" : "No runs"} />}
        />
      ) : (
        <SkeletonRows label="Loading runs" rows={8} height={56} />
      )}
    </>
  );
}

const rowsOf = (example: ExampleWithRuns): Row[] =>
  example.runs.map((run, index) => ({ example, run, ...(example.runs.length > 1 && { repetition: index + 1 }) }));

/** The list contains the outputs only if a key of them is previewed. */
const outputOf = ({ outputs, outputs_preview }: Run, key: string | undefined): string =>
  outputs ? previewOf(outputs, "outputs", key) : (outputs_preview ?? "None");

const TWO_LINES = "line-clamp-2 whitespace-normal";

const columnsOf = (names: readonly string[], keys: readonly Key[], previews: PreviewKeys): Column<Row>[] => [
  {
    id: "number",
    header: "#",
    cell: ({ example: { name } }) => <span className="text-text-3">{name.replace("#", "")}</span>,
    width: 68,
    numeric: true,
    sticky: true,
    card: "beside",
  },
  {
    id: "input",
    header: "Input",
    cell: ({ example, repetition }) => (
      <span className={TWO_LINES}>
        {repetition !== undefined && <span className="mr-1.5 font-mono text-text-3">×{repetition}</span>}
        {previewOf(example.inputs, "inputs", previews.inputs)}
      </span>
    ),
    width: 240,
    grow: true,
    sticky: true,
    card: "title",
  },
  ...names.map(
    (key): Column<Row> => ({
      id: `feedback.${key}`,
      header: key,
      cell: ({ run }) => <Scores feedback={run.feedbacks} of={key} keys={keys} />,
      width: Math.min(Math.max(100, 30 + 8 * key.length), 180),
      numeric: true,
      sort: `feedback.${key}`,
      card: "first",
    }),
  ),
  {
    id: "output",
    header: "Output",
    cell: ({ run }) =>
      run.error === null ? (
        <span className={TWO_LINES}>{outputOf(run, previews.outputs)}</span>
      ) : (
        <span className="flex items-center gap-2">
          <Status status="error" /> <span className={TWO_LINES}>{run.error}</span>
        </span>
      ),
    width: 260,
    grow: true,
  },
  {
    id: "expected",
    header: "Expected",
    cell: ({ example }) => <span className={TWO_LINES}>{previewOf(example.outputs, "outputs", previews.outputs)}</span>,
    width: 180,
    grow: true,
    card: "hidden",
  },
  {
    id: "latency",
    header: "Latency",
    cell: ({ run }) => latencyOf(run),
    width: 100,
    numeric: true,
    sort: "latency",
  },
];
