import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { MoreHorizontal, Trash2 } from "lucide-react";
import { useState } from "react";
import type { QueueOverview } from "../../../../src/experiments/contract/annotation-queues/app-queues.ts";
import { API_URL, api } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { Button } from "../../ui/button.tsx";
import { count } from "../../ui/format.ts";
import { Confirm } from "../../ui/overlay/confirm.tsx";
import { Menu } from "../../ui/overlay/menu.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { queueRoute } from "./page.ts";
import { itemQuery, QUEUES, queueQuery } from "./queries.ts";
import { Review } from "./review.tsx";

/** Shows the queue's items that the user still has to review, one at a time. */
export function QueuePage() {
  const { id } = queueRoute.useParams();
  const { skip = 0 } = queueRoute.useSearch();
  const navigate = queueRoute.useNavigate();
  const queue = useQuery(queueQuery(id));
  const item = useQuery(itemQuery(id, skip));
  const error = queue.error ?? item.error;
  const skipTo = (skipped: number) => void navigate({ params: { id }, search: { skip: skipped || undefined } });
  return (
    <Page
      title={queue.data?.name ?? "Annotation queue"}
      crumbs={[{ label: "Annotation queues", to: "/queues" }]}
      fill
      actions={queue.data && <QueueMenu queue={queue.data} />}
    >
      {error && !(queue.data && item.data !== undefined) ? (
        <ErrorState error={error} retry={() => void Promise.all([queue.refetch(), item.refetch()])} />
      ) : queue.data && item.data ? (
        <Review queue={queue.data} item={item.data} onSkip={() => skipTo(skip + 1)} />
      ) : queue.data && item.data === null ? (
        <NoItem queue={queue.data} onRestart={() => skipTo(0)} />
      ) : (
        <SkeletonRows label="Loading item" rows={8} />
      )}
    </Page>
  );
}

function NoItem({ queue: { id, items }, onRestart }: { queue: QueueOverview; onRestart(): void }) {
  const { needs_my_review, needs_others_review, archived } = items;
  if (needs_my_review > 0)
    return (
      <EmptyState
        title={`${count(needs_my_review)} skipped ${needs_my_review === 1 ? "item" : "items"} left`}
        action={
          <Button look="primary" onClick={onRestart}>
            Review skipped items
          </Button>
        }
      />
    );
  if (needs_others_review + archived > 0)
    return (
      <EmptyState title="No items left to review">
        {needs_others_review === 0
          ? `Completed items: ${count(archived)}.`
          : `Items waiting for other reviewers: ${count(needs_others_review)} of ${count(needs_others_review + archived)}.`}
      </EmptyState>
    );
  return (
    <EmptyState
      title="No items yet"
      command={[
        "from langsmith import Client",
        "",
        `client = Client(api_url=${JSON.stringify(`${API_URL}/api/v1`)})`,
        `client.add_runs_to_annotation_queue(${JSON.stringify(id)}, run_ids=[run_id])`,
      ].join("\n")}
    >
      Select a run in a trace and choose “Add to queue”, or add runs with the <code>langsmith</code> client.
    </EmptyState>
  );
}

function QueueMenu({ queue: { id, name } }: { queue: QueueOverview }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  return (
    <>
      <Menu items={[{ label: "Delete", icon: <Trash2 size={14} />, danger: true, onSelect: () => setDeleting(true) }]}>
        <Button square aria-label="Queue actions">
          <MoreHorizontal size={15} />
        </Button>
      </Menu>
      <Confirm
        open={isDeleting}
        onClose={() => setDeleting(false)}
        title={`Delete queue “${name}”?`}
        action="Delete"
        onConfirm={async () => {
          await api.delete(`/api/v1/annotation-queues/${id}`);
          // Leaves the page before the queries are invalidated, because refetching the deleted queue would fail.
          await navigate({ to: "/queues" });
          toast("Queue deleted");
          await client.invalidateQueries({ queryKey: QUEUES });
        }}
      >
        The queue and its review status are deleted. The runs and their feedback are kept.
      </Confirm>
    </>
  );
}
