import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { API_URL } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { DebouncedInput } from "../../ui/form/debounced-input.tsx";
import { DASH } from "../../ui/format.ts";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { CreateDeployment } from "./create-deployment.tsx";
import { DeploymentStatus, LatestRevision } from "./deployment-status.tsx";
import { deploymentsRoute } from "./page.ts";
import { deploymentsQuery } from "./queries.ts";
import { KIND_OF } from "./source-fields.tsx";

export function DeploymentsPage() {
  const { name, create } = deploymentsRoute.useSearch();
  const navigate = deploymentsRoute.useNavigate();
  const list = useInfiniteQuery(deploymentsQuery(name));
  const open = (isOpen: true | undefined) =>
    void navigate({ search: { name, create: isOpen }, replace: isOpen === undefined });
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
        <DebouncedInput
          aria-label="Name"
          placeholder="Filter by name"
          value={name}
          onChange={(text) => void navigate({ search: { name: text }, replace: true })}
          className="!w-72"
        />
      </search>
      {list.error && !deployments ? (
        <ErrorState error={list.error} retry={() => void list.refetch()} />
      ) : deployments === undefined ? (
        <SkeletonRows label="Loading deployments" height={56} />
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
              <EmptyState title="No deployments match" />
            ) : (
              <EmptyState title="No deployments yet" command={`npx threadmill deploy ./my-agent --url ${API_URL}`}>
                A deployment runs an agent project with its own database and secrets. Create a deployment here, or run
                the CLI with the path of the project folder:
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
  {
    id: "status",
    header: "Status",
    width: 130,
    card: "first",
    cell: (deployment) => <DeploymentStatus {...deployment} />,
  },
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
  { id: "source", header: "Source", width: 120, cell: ({ source }) => KIND_OF[source] },
  { id: "changed", header: "Updated", width: 110, cell: ({ updated_at }) => <RelativeTime time={updated_at} /> },
];
