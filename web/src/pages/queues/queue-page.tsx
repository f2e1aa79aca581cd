import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { MoreHorizontal, Trash2 } from "lucide-react";
import { useState } from "react";
import type { QueueOverview } from "../../../../src/experiments/contract/annotation-queues/app-queues.ts";
import { api } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/overlay/confirm.tsx";
import { Menu } from "../../ui/overlay/menu.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { queueRoute } from "./page.ts";
import { QUEUES, queueQuery } from "./queries.ts";
import { QueueItems } from "./queue-items.tsx";

/** A queue's items, one at a time. The inbox shows the same for each queue with items to review. */
export function QueuePage() {
  const { id } = queueRoute.useParams();
  const { skip = 0 } = queueRoute.useSearch();
  const navigate = queueRoute.useNavigate();
  const { data: queue } = useQuery(queueQuery(id));
  return (
    <Page
      title={queue?.name ?? "Annotation queue"}
      crumbs={[{ label: "Annotation queues", to: "/queues" }]}
      fill
      actions={queue && <QueueMenu queue={queue} />}
    >
      <QueueItems
        id={id}
        skip={skip}
        onSkipTo={(skipped) => void navigate({ params: { id }, search: { skip: skipped || undefined } })}
      />
    </Page>
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
