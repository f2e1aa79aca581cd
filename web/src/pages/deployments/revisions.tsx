import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Deployment, Revision } from "../../../../src/control-plane/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/code-block.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DASH } from "../../ui/format.ts";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { toast } from "../../ui/toast.tsx";
import { deploymentRoute } from "./page.ts";
import { deploymentsKey, interrupt, redeploy, revisionsQuery } from "./queries.ts";
import { isUnderWay, mayBeRedeployed, RevisionState } from "./revision-status.tsx";

/** What the deployment was, is and is about to be made of. */
export function Revisions({ deployment }: { deployment: Deployment }) {
  const { id, active_revision_id } = deployment;
  const client = useQueryClient();
  const navigate = deploymentRoute.useNavigate();
  const list = useInfiniteQuery(revisionsQuery(id));
  const [returning, setReturning] = useState<Revision>();
  const refresh = () => client.invalidateQueries({ queryKey: deploymentsKey });
  const interrupting = useMutation({
    mutationFn: (revision: Revision) => interrupt(id, revision.id),
    onError: (error) => toast(error.message, { error: true }),
    onSuccess: () => toast("It ends soon. What serves is not touched."),
    onSettled: refresh,
  });
  const revisions = list.data?.pages.flatMap(({ resources }) => resources);
  if (list.error && !revisions) return <ErrorState error={list.error} retry={() => void list.refetch()} />;
  if (!revisions) return <SkeletonRows label="Fetching the revisions" height={56} rows={3} />;
  return (
    <>
      <Table
        name="Revisions"
        rows={revisions}
        rowHeight={56}
        columns={columnsFor({
          active: active_revision_id,
          isBusy: revisions.some(isUnderWay),
          interrupt: (revision) => interrupting.mutate(revision),
          redeploy: setReturning,
          showLogs: ({ id: revision, status }) => {
            const logs = status === "DEPLOYED" || status === "DEPLOY_FAILED" ? "deploy" : "build";
            void navigate({ search: { tab: "logs", revision, logs } });
          },
        })}
        keyOf={(revision) => revision.id}
        onEnd={() => void (list.hasNextPage && !list.isFetchingNextPage && list.fetchNextPage())}
        className="max-h-[65vh] rounded-lg border border-line"
        empty={
          <EmptyState title="No revisions yet">
            Nothing was brought to this deployment so far: “New revision” brings a folder.
          </EmptyState>
        }
      />
      <Confirm
        open={returning !== undefined}
        onClose={() => setReturning(undefined)}
        title={returning?.id === active_revision_id ? "Deploy this revision again?" : "Roll back to this revision?"}
        action={returning?.id === active_revision_id ? "Deploy again" : "Roll back"}
        onConfirm={async () => {
          await redeploy(id, returning?.id ?? "");
          await refresh();
          toast("It is being deployed as it was built.");
        }}
      >
        It is started as it was built, with the secrets it had then. The traffic goes to it once it is ready; until then
        what serves goes on.
      </Confirm>
    </>
  );
}

interface RevisionActions {
  active: string | null;
  /** A revision is under way: no other can be deployed again. */
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
        {id === active && <Badge>serves</Badge>}
      </span>
    ),
  },
  {
    id: "status",
    header: "Status",
    width: 150,
    card: "first",
    cell: (revision) => <RevisionState revision={revision} />,
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
  { id: "of", header: "Made of", width: 180, cell: (revision) => <code>{madeOf(revision)}</code> },
  { id: "made", header: "Made", width: 110, cell: ({ created_at }) => <RelativeTime time={created_at} /> },
  {
    id: "actions",
    header: <span className="sr-only">Actions</span>,
    width: 200,
    cell: (revision) => (
      <span className="flex gap-2">
        <Button small aria-label={`Logs of the revision ${revision.id}`} onClick={() => showLogs(revision)}>
          Logs
        </Button>
        {isUnderWay(revision) && (
          <Button small look="danger" onClick={() => interrupt(revision)}>
            Interrupt
          </Button>
        )}
        {mayBeRedeployed(revision) && !isBusy && (
          <Button
            small
            aria-label={`${revision.id === active ? "Redeploy" : "Roll back to"} the revision ${revision.id}`}
            onClick={() => redeploy(revision)}
          >
            {revision.id === active ? "Redeploy" : "Roll back"}
          </Button>
        )}
      </span>
    ),
  },
];

function madeOf({ source_revision_config: made }: Revision): string {
  if (made.image_uri) return made.image_uri;
  if (made.repo_commit_sha) return `${made.repo_ref ?? ""} ${made.repo_commit_sha.slice(0, 8)}`.trim();
  return made.repo_ref ?? made.langgraph_config_path ?? "folder";
}
