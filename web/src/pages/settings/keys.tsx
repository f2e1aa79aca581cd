import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import type { ApiKey } from "../../../../src/access/contract/admin.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/overlay/confirm.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge, Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { NewKey } from "./new-key.tsx";
import { keysQuery } from "./queries.ts";

export function Keys() {
  const { data: keys, error, refetch } = useQuery(keysQuery);
  const [isCreating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey>();
  const client = useQueryClient();
  const [columns] = useState(() => columnsWith(setRevoking));
  if (error && !keys) return <ErrorState error={error} retry={() => void refetch()} />;
  return (
    <>
      <div className="mb-3 flex items-center justify-between gap-4">
        <p className="text-text-2">
          Clients send a key with each request. Once a key has been created, each request needs a valid key or JWT.
        </p>
        <Button look="primary" onClick={() => setCreating(true)}>
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
            <EmptyState title="No API keys yet" command="npx threadmill keys create --name laptop --user me">
              Create a key here or with the CLI on the server.
            </EmptyState>
          }
        />
      ) : (
        <SkeletonRows label="Loading API keys" />
      )}
      {isCreating && <NewKey onClose={() => setCreating(false)} />}
      <Confirm
        open={revoking !== undefined}
        onClose={() => setRevoking(undefined)}
        title={`Revoke API key “${revoking?.name}”?`}
        action="Revoke"
        onConfirm={async () => {
          await api.delete(`/admin/keys/${revoking?.id}`);
          await client.invalidateQueries(keysQuery);
          toast("API key revoked");
        }}
      >
        The server will immediately reject requests with this key. This cannot be undone.
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
  { id: "id", header: "ID", cell: (key) => <code>{key.id}</code>, width: 140 },
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
  { id: "created", header: "Created", cell: (key) => <RelativeTime time={key.created_at} />, width: 110 },
  { id: "used", header: "Last used", cell: (key) => <RelativeTime time={key.last_used_at} />, width: 110 },
  {
    id: "state",
    header: "Status",
    cell: (key) =>
      key.revoked_at ? (
        <Status status="revoked" />
      ) : (
        <Button small look="danger" aria-label={`Revoke ${key.name}`} onClick={() => revoke(key)}>
          Revoke
        </Button>
      ),
    width: 110,
  },
];
