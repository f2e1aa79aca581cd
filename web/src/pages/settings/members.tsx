import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Member, Workspace } from "../../../../src/access/contract/admin.ts";
import { api, send } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input, submits } from "../../ui/form/field.tsx";
import { Sheet } from "../../ui/overlay/dialog.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";

/** Manages the users who can access the workspace with a JWT. API keys need no membership: each key belongs to one workspace. */
export function Members({ workspace, onClose }: { workspace: Workspace | undefined; onClose(): void }) {
  return (
    <Sheet
      open={workspace !== undefined}
      onClose={onClose}
      width={480}
      title={`Members of “${workspace?.name}”`}
      description="Users of the identity provider who can access this workspace. Each API key belongs to one workspace and requires no membership."
    >
      {workspace && <MemberList path={`/admin/workspaces/${workspace.tenant_id}/members`} />}
    </Sheet>
  );
}

function MemberList({ path }: { path: string }) {
  const client = useQueryClient();
  const [user, setUser] = useState("");
  const queryKey = ["admin", path];
  const members = useQuery({ queryKey, queryFn: ({ signal }) => api.get<Member[]>(path, { signal, tenant_id: null }) });
  const change = useMutation({
    mutationFn: ({ method, user_id }: { method: "PUT" | "DELETE"; user_id: string }) =>
      send(method, `${path}/${encodeURIComponent(user_id)}`, { tenant_id: null }),
    onSuccess: () => client.invalidateQueries({ queryKey }),
  });
  const submit = submits(() => change.mutate({ method: "PUT", user_id: user }, { onSuccess: () => setUser("") }));
  if (members.error && !members.data) return <ErrorState error={members.error} retry={() => void members.refetch()} />;
  return (
    <>
      <form onSubmit={submit} className="mb-4 flex items-end gap-2">
        <div className="flex-1">
          <Field label="User" error={change.error?.message}>
            {(props) => (
              <Input
                {...props}
                required
                maxLength={256}
                placeholder="The sub claim of the user's JWT"
                value={user}
                onChange={(event) => setUser(event.target.value)}
              />
            )}
          </Field>
        </div>
        <Button type="submit" disabled={change.isPending}>
          Add
        </Button>
      </form>
      {!members.data && <SkeletonRows label="Loading members" rows={3} />}
      {members.data?.length === 0 && <EmptyState title="No members yet" />}
      <ul className="divide-y divide-line">
        {members.data?.map(({ user_id, created_at }) => (
          <li key={user_id} className="flex items-center gap-3 py-1.5 text-table">
            <span className="min-w-0 flex-1 truncate font-medium">{user_id}</span>
            <span className="text-text-2">
              <RelativeTime time={created_at} />
            </span>
            <Button
              small
              look="danger"
              aria-label={`Remove ${user_id}`}
              onClick={() => change.mutate({ method: "DELETE", user_id })}
            >
              Remove
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}
