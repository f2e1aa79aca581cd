import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Example } from "../../../../../src/experiments/contract/datasets/examples.ts";
import { Input } from "../../../ui/form/field.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { Table } from "../../../ui/table/table.tsx";
import { type PreviewKeys, previewOf, usePreviewKeys } from "../preview.ts";
import { PreviewPicker } from "../preview-picker.tsx";
import { examplesQuery } from "../queries.ts";
import { type DatasetSearch, datasetRoute } from "../routes.ts";
import { ExampleSheet } from "./example-sheet.tsx";

export function ExamplesTab({ dataset }: { dataset: Dataset }) {
  const search = datasetRoute.useSearch();
  const navigate = datasetRoute.useNavigate();
  const { q, example } = search;
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(
    examplesQuery(dataset.id, q),
  );
  const examples = useMemo(() => data?.pages.flat(), [data]);
  const keys = usePreviewKeys(dataset.id);
  const columns = useMemo(() => columnsOf(keys), [keys]);
  const go = (changed: DatasetSearch) =>
    void navigate({ params: { id: dataset.id }, search: { ...search, tab: "examples", ...changed }, replace: true });
  return (
    <>
      <div className="flex items-center gap-3 border-line border-b px-6 py-2 max-sm:px-4">
        <Input
          type="search"
          aria-label="Search examples"
          placeholder="Search inputs and expected outputs"
          className="max-w-80"
          value={q ?? ""}
          onChange={(event) => go({ q: event.target.value || undefined })}
        />
        <PreviewPicker dataset_id={dataset.id} />
      </div>
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : examples ? (
        <Table
          name="Examples"
          rows={examples}
          columns={columns}
          keyOf={({ id }) => id}
          rowHeight={32}
          selected={example}
          onSelect={(id) => go({ example: id })}
          onOpen={({ id }) => go({ example: id })}
          onEnd={() => hasNextPage && !isFetchingNextPage && void fetchNextPage()}
          className="flex-1"
          empty={
            q ? (
              <EmptyState title={`No examples match “${q}”`} />
            ) : (
              <EmptyState title="No examples yet">
                To create examples, upload an experiment to this dataset, add runs to the dataset, or use{" "}
                <code>POST /examples</code>.
              </EmptyState>
            )
          }
        />
      ) : (
        <SkeletonRows label="Loading examples" rows={10} />
      )}
      <ExampleSheet id={example} onClose={() => go({ example: undefined })} />
    </>
  );
}

const columnsOf = (keys: PreviewKeys): Column<Example>[] => [
  {
    id: "inputs",
    header: "Input",
    cell: ({ inputs }) => previewOf(inputs, "inputs", keys.inputs),
    width: 460,
    grow: true,
    sticky: true,
    card: "title",
  },
  {
    id: "outputs",
    header: "Expected",
    cell: ({ outputs }) => previewOf(outputs, "outputs", keys.outputs),
    width: 460,
    grow: true,
    card: "first",
  },
  { id: "changed", header: "Updated", cell: ({ modified_at }) => <RelativeTime time={modified_at} />, width: 130 },
];
