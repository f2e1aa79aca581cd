import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import type { ApiKey } from "../../../../src/access/contract/admin.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge, Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { toast } from "../../ui/toast.tsx";
import { NewKey } from "./new-key.tsx";
import { keysQuery } from "./queries.ts";

/** The keys of the workspace: make one, see what they are used for, revoke them. */
export function Keys() {
  const { data: keys, error, refetch } = useQuery(keysQuery);
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey>();
  const client = useQueryClient();
  const [columns] = useState(() => columnsWith(setRevoking));
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  return (
    <>
      <div className="mb-3 flex items-center justify-between gap-4">
        <p className="text-text-2">
          Programs show a key with each request. With the first one the server is closed to all others.
        </p>
        <Button look="primary" onClick={() => setMaking(true)}>
          <Plus size={15} aria-hidden /> New key
        </Button>
      </div>
      {keys ? (
        <Table
          name="API keys"
          rows={keys}
          columns={columns}
          keyOf={(key) => key.id}
          className="max-h-[70vh] rounded-lg border border-line"
          empty={
            <EmptyState title="No keys yet" command="npx threadmill keys create --name laptop --user me">
              Make one here or where the server's data are.
            </EmptyState>
          }
        />
      ) : (
        <SkeletonRows label="Fetching the keys" />
      )}
      <NewKey open={making} onClose={() => setMaking(false)} />
      <Confirm
        open={revoking !== undefined}
        onClose={() => setRevoking(undefined)}
        title={`Revoke the key “${revoking?.name}”?`}
        action="Revoke"
        onConfirm={async () => {
          await api.delete(`/admin/keys/${revoking?.id}`);
          await client.invalidateQueries(keysQuery);
          toast("The key is revoked.");
        }}
      >
        From then on no request with it is let in. This cannot be undone.
      </Confirm>
    </>
  );
}

const columnsWith = (revoke: (key: ApiKey) => void): Column<ApiKey>[] => [
  {
    id: "name",
    header: "Name",
    cell: (key) => <span className="font-medium">{key.name}</span>,
    width: 180,
    grow: true,
    card: "title",
  },
  { id: "id", header: "Id", cell: (key) => <code>{key.id}</code>, width: 140 },
  { id: "user", header: "User", cell: (key) => key.user_id, width: 110 },
  {
    id: "scopes",
    header: "Scopes",
    cell: (key) => (
      <span className="flex gap-1" title={key.scopes.join(", ")}>
        {key.scopes.slice(0, 2).map((scope) => (
          <Badge key={scope}>{scope}</Badge>
        ))}
        {key.scopes.length > 2 && <span className="text-text-3">+{key.scopes.length - 2}</span>}
      </span>
    ),
    width: 220,
  },
  { id: "created", header: "Made", cell: (key) => <RelativeTime time={key.created_at} />, width: 110 },
  { id: "used", header: "Last used", cell: (key) => <RelativeTime time={key.last_used_at} />, width: 110 },
  {
    id: "state",
    header: "State",
    cell: (key) =>
      key.revoked_at ? (
        <Status status="revoked" />
      ) : (
        <Button small look="danger" aria-label={`Revoke the key ${key.name}`} onClick={() => revoke(key)}>
          Revoke
        </Button>
      ),
    width: 110,
  },
];
