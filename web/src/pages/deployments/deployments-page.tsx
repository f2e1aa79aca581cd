import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { Input } from "../../ui/field.tsx";
import { DASH } from "../../ui/format.ts";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Table } from "../../ui/table.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { CreateDeployment } from "./create-deployment.tsx";
import { deploymentsRoute } from "./page.ts";
import { deploymentsQuery, revisionQuery } from "./queries.ts";
import { RevisionState, ServingState } from "./revision-status.tsx";

/** The workspace's deployments: what serves, and what is about to. */
export function DeploymentsPage() {
  const { name, create } = deploymentsRoute.useSearch();
  const navigate = deploymentsRoute.useNavigate();
  const list = useInfiniteQuery(deploymentsQuery(name));
  const open = (is: true | undefined) => void navigate({ search: { name, create: is }, replace: is === undefined });
  useKeys({ n: { does: "New deployment", run: () => open(true) } });
  const deployments = list.data?.pages.flatMap(({ resources }) => resources);
  return (
    <Page
      title="Deployments"
      fill
      actions={
        <Button look="primary" aria-keyshortcuts="n" onClick={() => open(true)}>
          <Plus size={15} aria-hidden /> New deployment
        </Button>
      }
    >
      <search className="px-6 py-2 max-sm:px-4">
        <Input
          aria-label="Name"
          placeholder="A part of the name"
          value={name ?? ""}
          onChange={({ target }) => void navigate({ search: { name: target.value || undefined }, replace: true })}
          className="!w-72"
        />
      </search>
      {list.error && !deployments ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : deployments === undefined ? (
        <SkeletonRows label="Fetching the deployments" height={56} />
      ) : (
        <Table
          name="Deployments"
          rows={deployments}
          columns={COLUMNS}
          rowHeight={56}
          keyOf={({ id }) => id}
          onOpen={({ id }) => void navigate({ to: `/deployments/${id}` })}
          onEnd={() => void (list.hasNextPage && !list.isFetchingNextPage && list.fetchNextPage())}
          empty={
            name ? (
              <EmptyState title="No deployment is called so" />
            ) : (
              <EmptyState title="No deployments yet" command="npx threadmill deploy ./my-agent">
                A deployment runs an agent project beside the others, with its own database and secrets. Make one here,
                or from the folder of the project:
              </EmptyState>
            )
          }
          className="flex-1 border-line border-t"
        />
      )}
      {create && <CreateDeployment onClose={() => open(undefined)} />}
    </Page>
  );
}

const COLUMNS: Column<Deployment>[] = [
  {
    id: "name",
    header: "Name",
    width: 220,
    card: "title",
    cell: ({ id, name }) => (
      <Link to={`/deployments/${id}`} className="rounded font-medium text-accent-text hover:underline">
        {name}
      </Link>
    ),
  },
  { id: "status", header: "Status", width: 130, card: "first", cell: (deployment) => <ServingState {...deployment} /> },
  {
    id: "revision",
    header: "Latest revision",
    width: 170,
    card: "first",
    cell: ({ id, latest_revision_id }) =>
      latest_revision_id ? <LatestRevision id={id} revision_id={latest_revision_id} /> : DASH,
  },
  {
    id: "url",
    header: "URL",
    width: 340,
    grow: true,
    cell: ({ source_config: { custom_url } }) => <code>{custom_url}</code>,
  },
  { id: "source", header: "Source", width: 120, cell: ({ source }) => sourceWords(source) },
  { id: "changed", header: "Changed", width: 110, cell: ({ updated_at }) => <RelativeTime time={updated_at} /> },
];

const sourceWords = (source: Deployment["source"]): string =>
  ({ internal_source: "folder", github: "git", internal_docker: "image", external_docker: "image" })[source];

function LatestRevision({ id, revision_id }: { id: string; revision_id: string }) {
  const { data } = useQuery(revisionQuery(id, revision_id));
  return data ? <RevisionState revision={data} /> : <span className="text-text-3">{DASH}</span>;
}
