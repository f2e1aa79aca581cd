import { useQuery } from "@tanstack/react-query";
import type { QueueOverview } from "../../../../src/experiments/contract/annotation-queues/app-queues.ts";
import { API_URL } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { count } from "../../ui/format.ts";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { itemQuery, queueQuery } from "./queries.ts";
import { Review } from "./review.tsx";

/**
 * Shows the queue's items that the user still has to review, one at a time.
 *
 * @param skip number of items that the user has skipped; the caller stores it in the URL
 */
export function QueueItems({ id, skip, onSkipTo }: { id: string; skip: number; onSkipTo(skipped: number): void }) {
  const queue = useQuery(queueQuery(id));
  const item = useQuery(itemQuery(id, skip));
  const error = queue.error ?? item.error;
  if (error && !(queue.data && item.data !== undefined))
    return <ErrorState error={error} retry={() => void Promise.all([queue.refetch(), item.refetch()])} />;
  if (!queue.data || item.data === undefined) return <SkeletonRows label="Loading item" rows={8} />;
  return item.data ? (
    <Review queue={queue.data} item={item.data} onSkip={() => onSkipTo(skip + 1)} />
  ) : (
    <NoItem queue={queue.data} onRestart={() => onSkipTo(0)} />
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
          : `Items waiting for other reviewers: ${count(needs_others_review)}. Archived items: ${count(archived)}.`}
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
