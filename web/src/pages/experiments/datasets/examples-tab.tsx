import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useMemo, useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import type { Example } from "../../../../../src/experiments/contract/datasets/examples.ts";
import { Button } from "../../../ui/button.tsx";
import { DebouncedInput } from "../../../ui/form/debounced-input.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { exactTime } from "../../../ui/format.ts";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { Table } from "../../../ui/table/table.tsx";
import { type PreviewKeys, previewOf, usePreviewKeys } from "../preview.ts";
import { PreviewPicker } from "../preview-picker.tsx";
import { examplesQuery, splitsQuery, versionsQuery } from "../queries.ts";
import { type DatasetSearch, datasetRoute } from "../routes.ts";
import { ExampleForm, splitsOf } from "./example-form.tsx";
import { ExampleSheet } from "./example-sheet.tsx";

/** Value of the options for all splits and for the latest version. Radix does not accept an empty value. */
const ALL = "*";

export function ExamplesTab({ dataset }: { dataset: Dataset }) {
  const search = datasetRoute.useSearch();
  const navigate = datasetRoute.useNavigate();
  const { q, example, split, version } = search;
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(
    examplesQuery(dataset.id, { text: q, split, as_of: version }),
  );
  const { data: splits = [] } = useQuery(splitsQuery(dataset.id, version));
  const { data: versions = [] } = useQuery(versionsQuery(dataset.id));
  const [isAdding, setAdding] = useState(false);
  const examples = useMemo(() => data?.pages.flat(), [data]);
  const keys = usePreviewKeys(dataset.id);
  // Examples of an externally managed dataset come from uploads only.
  const canAdd = version === undefined && !dataset.externally_managed;
  const columns = useMemo(() => columnsOf(keys), [keys]);
  const go = (changed: DatasetSearch) =>
    void navigate({ params: { id: dataset.id }, search: { ...search, tab: "examples", ...changed }, replace: true });
  return (
    <>
      <div className="flex flex-wrap items-center gap-3 border-line border-b px-6 py-2 max-sm:px-4">
        <DebouncedInput
          type="search"
          aria-label="Search examples"
          placeholder="Search inputs and expected outputs"
          className="max-w-80"
          value={q}
          onChange={(text) => go({ q: text })}
        />
        {(splits.length > 1 || split !== undefined) && (
          <Select
            aria-label="Split"
            value={split ?? ALL}
            options={[{ value: ALL, label: "All splits" }, ...splits.map((name) => ({ value: name, label: name }))]}
            onChange={(chosen) => go({ split: chosen === ALL ? undefined : chosen })}
          />
        )}
        {(versions.length > 1 || version !== undefined) && (
          <Select
            aria-label="Version"
            value={version ?? ALL}
            options={[
              { value: ALL, label: "Latest version" },
              ...versions.flatMap(({ as_of, tags }, index) =>
                index === 0 ? [] : [{ value: as_of, label: exactTime(new Date(as_of)), hint: tags?.join(", ") }],
              ),
            ]}
            onChange={(chosen) => go({ version: chosen === ALL ? undefined : chosen, example: undefined })}
          />
        )}
        <PreviewPicker dataset_id={dataset.id} />
        {canAdd && (
          <Button className="ml-auto" onClick={() => setAdding(true)}>
            <Plus size={15} aria-hidden /> Add example
          </Button>
        )}
      </div>
      {error && !data ? (
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
            q || split ? (
              <EmptyState title={q ? `No examples match “${q}”` : `No examples in the split “${split}”`} />
            ) : (
              <EmptyState
                title="No examples yet"
                action={canAdd && <Button onClick={() => setAdding(true)}>Add example</Button>}
              >
                {dataset.externally_managed
                  ? "Examples are created when experiments are uploaded to this dataset."
                  : "Traced runs can be added as examples."}
              </EmptyState>
            )
          }
        />
      ) : (
        <SkeletonRows label="Loading examples" rows={10} />
      )}
      <ExampleSheet id={example} as_of={version} onClose={() => go({ example: undefined })} />
      {isAdding && (
        <ExampleForm dataset_id={dataset.id} onSaved={(id) => go({ example: id })} onClose={() => setAdding(false)} />
      )}
    </>
  );
}

const columnsOf = (keys: PreviewKeys): Column<Example>[] => [
  {
    id: "inputs",
    header: "Input",
    cell: ({ inputs }) => previewOf(inputs, "inputs", keys.inputs),
    width: 400,
    grow: true,
    sticky: true,
    card: "title",
  },
  {
    id: "outputs",
    header: "Expected",
    cell: ({ outputs }) => previewOf(outputs, "outputs", keys.outputs),
    width: 400,
    grow: true,
    card: "first",
  },
  { id: "splits", header: "Splits", cell: (example) => splitsOf(example).join(", "), width: 120 },
  { id: "changed", header: "Updated", cell: ({ modified_at }) => <RelativeTime time={modified_at} />, width: 130 },
];
