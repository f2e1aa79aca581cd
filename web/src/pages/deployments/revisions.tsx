import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Deployment, Revision } from "../../../../src/control-plane/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/code-block.tsx";
import { DASH } from "../../ui/format.ts";
import { Confirm } from "../../ui/overlay/confirm.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { deploymentRoute } from "./page.ts";
import { deploymentsKey, interrupt, redeploy, revisionsQuery } from "./queries.ts";
import { hasFailed, isInProgress, RevisionStatusLabel } from "./revision-status.tsx";

export function Revisions({ deployment }: { deployment: Deployment }) {
  const { id, active_revision_id } = deployment;
  const client = useQueryClient();
  const navigate = deploymentRoute.useNavigate();
  const list = useInfiniteQuery(revisionsQuery(id));
  const [redeploying, setRedeploying] = useState<Revision>();
  const refresh = () => client.invalidateQueries({ queryKey: deploymentsKey });
  const interrupting = useMutation({
    mutationFn: (revision: Revision) => interrupt(id, revision.id),
    onError: (error) => toast(error.message, { error: true }),
    onSuccess: () => toast("Interrupting the revision. The live revision is not affected."),
    onSettled: refresh,
  });
  const revisions = list.data?.pages.flatMap(({ resources }) => resources);
  if (list.error && !revisions) return <ErrorState error={list.error} retry={() => void list.refetch()} />;
  if (!revisions) return <SkeletonRows label="Loading revisions" height={56} rows={3} />;
  const showLogs = ({ id: revision, status }: Revision) => {
    const logs = status === "DEPLOYED" || status === "DEPLOY_FAILED" ? "deploy" : "build";
    void navigate({ search: { tab: "logs", revision, logs } });
  };
  const [latest] = revisions;
  return (
    <>
      {latest && hasFailed(latest) && latest.status_message && (
        <div role="alert" className="mb-3 flex items-start gap-3 rounded-lg border border-line bg-error-bg px-3 py-2">
          <p className="min-w-0 flex-1 whitespace-pre-wrap break-words text-table">
            The latest revision has failed: {latest.status_message}
          </p>
          <Button small onClick={() => showLogs(latest)}>
            Logs
          </Button>
        </div>
      )}
      <Table
        name="Revisions"
        rows={revisions}
        rowHeight={56}
        columns={columnsFor({
          active: active_revision_id,
          isBusy: revisions.some(isInProgress),
          interrupt: (revision) => interrupting.mutate(revision),
          redeploy: setRedeploying,
          showLogs,
        })}
        keyOf={(revision) => revision.id}
        onEnd={() => void (list.hasNextPage && !list.isFetchingNextPage && list.fetchNextPage())}
        className="max-h-[65vh] rounded-lg border border-line"
        empty={<EmptyState title="No revisions yet">Create a revision to deploy the first version.</EmptyState>}
      />
      <Confirm
        open={redeploying !== undefined}
        onClose={() => setRedeploying(undefined)}
        title={redeploying?.id === active_revision_id ? "Redeploy this revision?" : "Roll back to this revision?"}
        action={redeploying?.id === active_revision_id ? "Redeploy" : "Roll back"}
        onConfirm={async () => {
          await redeploy(id, redeploying?.id ?? "");
          await refresh();
          toast("Deploying the revision");
        }}
      >
        The revision's existing build is deployed with its original secrets. The live revision serves requests until the
        new instances are ready.
      </Confirm>
    </>
  );
}

interface RevisionActions {
  active: string | null;
  /** Whether a revision is in progress. No other revision can then be redeployed. */
  isBusy: boolean;
  interrupt(revision: Revision): void;
  redeploy(revision: Revision): void;
  showLogs(revision: Revision): void;
}

const columnsFor = ({ active, isBusy, interrupt, redeploy, showLogs }: RevisionActions): Column<Revision>[] => [
  {
    id: "revision",
    header: "Revision",
    width: 200,
    card: "title",
    cell: ({ id }) => (
      <span className="flex items-center gap-1">
        <Id id={id} />
        {id === active && <Badge>Live</Badge>}
      </span>
    ),
  },
  {
    id: "status",
    header: "Status",
    width: 150,
    card: "first",
    cell: (revision) => <RevisionStatusLabel revision={revision} />,
  },
  {
    id: "message",
    header: "Message",
    width: 220,
    grow: true,
    cell: ({ status_message }) => (
      <span className="line-clamp-2 whitespace-normal" title={status_message ?? undefined}>
        {status_message ?? DASH}
      </span>
    ),
  },
  { id: "source", header: "Source", width: 180, cell: (revision) => <code>{sourceLabel(revision)}</code> },
  { id: "created", header: "Created", width: 110, cell: ({ created_at }) => <RelativeTime time={created_at} /> },
  {
    id: "actions",
    header: <span className="sr-only">Actions</span>,
    width: 200,
    cell: (revision) => (
      <span className="flex gap-2">
        <Button small aria-label={`Logs of revision ${revision.id}`} onClick={() => showLogs(revision)}>
          Logs
        </Button>
        {isInProgress(revision) && (
          <Button small look="danger" onClick={() => interrupt(revision)}>
            Interrupt
          </Button>
        )}
        {revision.can_redeploy && !isBusy && (
          <Button
            small
            aria-label={`${revision.id === active ? "Redeploy" : "Roll back to"} revision ${revision.id}`}
            onClick={() => redeploy(revision)}
          >
            {revision.id === active ? "Redeploy" : "Roll back"}
          </Button>
        )}
      </span>
    ),
  },
];

function sourceLabel({ source_revision_config: source }: Revision): string {
  if (source.image_uri) return source.image_uri;
  if (source.repo_commit_sha) return `${source.repo_ref ?? ""} ${source.repo_commit_sha.slice(0, 8)}`.trim();
  return source.repo_ref ?? source.langgraph_config_path ?? "folder";
}
