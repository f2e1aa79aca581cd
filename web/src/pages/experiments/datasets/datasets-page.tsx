import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus, Upload } from "lucide-react";
import { useMemo, useState } from "react";
import type { Dataset } from "../../../../../src/experiments/contract/datasets/datasets.ts";
import { API_URL, api } from "../../../api/request.ts";
import { Page } from "../../../frame/header.tsx";
import { Button } from "../../../ui/button.tsx";
import { DebouncedInput } from "../../../ui/form/debounced-input.tsx";
import { Field, Input } from "../../../ui/form/field.tsx";
import { count } from "../../../ui/format.ts";
import { FormDialog } from "../../../ui/overlay/form-dialog.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { Table } from "../../../ui/table/table.tsx";
import { datasetsQuery, EXPERIMENTS } from "../queries.ts";
import { datasetsRoute, sortOf, sortText } from "../routes.ts";
import { SampleButton } from "../sample/sample-button.tsx";
import { useUploads } from "../upload/upload-dialog.tsx";

const DEFAULT_SORT = "-last_session_start_time";

export function DatasetsPage() {
  const { q, sort: given } = datasetsRoute.useSearch();
  const navigate = datasetsRoute.useNavigate();
  const sort = sortOf(given, DEFAULT_SORT);
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(
    datasetsQuery(q, sort),
  );
  const datasets = useMemo(() => data?.pages.flat(), [data]);
  const uploads = useUploads();
  const [isCreating, setCreating] = useState(false);
  return (
    <Page
      title="Experiments"
      fill
      actions={
        <>
          <Button onClick={() => setCreating(true)}>
            <Plus size={15} aria-hidden /> Create dataset
          </Button>
          <Button look="primary" onClick={uploads.open}>
            <Upload size={15} aria-hidden /> Upload
          </Button>
        </>
      }
    >
      <div className="flex items-center gap-3 border-line border-b px-6 py-2 max-sm:px-4">
        <DebouncedInput
          type="search"
          aria-label="Search datasets by name"
          placeholder="Search datasets"
          className="max-w-72"
          value={q}
          onChange={(text) => void navigate({ search: { q: text, sort: given }, replace: true })}
        />
        {datasets && (
          <span className="ml-auto text-table text-text-3">
            {count(datasets.length)}
            {hasNextPage && "+"} dataset{datasets.length === 1 ? "" : "s"}
          </span>
        )}
      </div>
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : datasets ? (
        <Table
          name="Datasets"
          rows={datasets}
          columns={COLUMNS}
          keyOf={({ id }) => id}
          sort={sort}
          onSort={(chosen) => void navigate({ search: { q, sort: sortText(chosen, DEFAULT_SORT) } })}
          onOpen={({ id }) => void navigate({ to: "/experiments/datasets/$id", params: { id } })}
          onEnd={() => hasNextPage && !isFetchingNextPage && void fetchNextPage()}
          className="flex-1"
          empty={q ? <NoMatches text={q} /> : <NoDatasets />}
        />
      ) : (
        <SkeletonRows label="Loading datasets" rows={10} />
      )}
      {uploads.dialog}
      {isCreating && <CreateDataset onClose={() => setCreating(false)} />}
    </Page>
  );
}

/** Creates a dataset without examples, and opens it. */
function CreateDataset({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const creating = useMutation({
    mutationFn: () =>
      api.post<Dataset>("/api/v1/datasets", { name: name.trim(), description: description.trim() || null }),
    onSettled: () => client.invalidateQueries({ queryKey: EXPERIMENTS }),
    onSuccess: async ({ id }) => {
      toast("Dataset created");
      onClose();
      await navigate({ to: "/experiments/datasets/$id", params: { id }, search: { tab: "examples" } });
    },
  });
  return (
    <FormDialog
      title="Create dataset"
      description="A dataset consists of examples. Each example has an input and, optionally, an expected output. Experiments are run on the examples."
      action="Create dataset"
      disabled={creating.isPending}
      error={creating.error}
      onSubmit={() => creating.mutate()}
      onClose={onClose}
    >
      <Field label="Name" isRequired>
        {(props) => (
          <Input
            {...props}
            required
            autoFocus
            maxLength={200}
            value={name}
            onChange={({ target }) => setName(target.value)}
          />
        )}
      </Field>
      <Field label="Description">
        {(props) => <Input {...props} value={description} onChange={({ target }) => setDescription(target.value)} />}
      </Field>
    </FormDialog>
  );
}

const COLUMNS: Column<Dataset>[] = [
  {
    id: "name",
    header: "Dataset",
    cell: ({ id, name }) => (
      <Link to="/experiments/datasets/$id" params={{ id }} className="font-medium hover:underline">
        {name}
      </Link>
    ),
    width: 280,
    grow: true,
    sticky: true,
    sort: "name",
    card: "title",
  },
  {
    id: "examples",
    header: "Examples",
    cell: ({ example_count }) => count(example_count),
    width: 110,
    numeric: true,
    sort: "example_count",
  },
  {
    id: "experiments",
    header: "Experiments",
    cell: ({ session_count }) => count(session_count),
    width: 120,
    numeric: true,
    sort: "session_count",
  },
  {
    id: "last",
    header: "Last experiment",
    cell: ({ last_session_start_time }) => <RelativeTime time={last_session_start_time} />,
    width: 150,
    sort: "last_session_start_time",
  },
  {
    id: "created",
    header: "Created",
    cell: ({ created_at }) => <RelativeTime time={created_at} />,
    width: 130,
    sort: "created_at",
  },
  {
    id: "description",
    header: "Description",
    cell: ({ description }) => <span className="text-text-2">{description}</span>,
    width: 320,
    grow: true,
    card: "hidden",
  },
];

const NoMatches = ({ text }: { text: string }) => (
  <EmptyState title={`No datasets match “${text}”`}>The search covers dataset names, not examples.</EmptyState>
);

const NoDatasets = () => (
  <EmptyState
    title="No experiments yet"
    command={`npx threadmill experiments upload results.jsonl --dataset capitals --url ${API_URL}`}
    action={<SampleButton />}
  >
    Drop JSON, JSONL or CSV files with evaluation results here, or upload them with the CLI. To explore the app first,
    load the sample dataset.
  </EmptyState>
);
