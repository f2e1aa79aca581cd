import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Workspace } from "../../../../src/access/contract/admin.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input, submits } from "../../ui/form/field.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { Members } from "./members.tsx";
import { workspacesQuery } from "./queries.ts";

export function Workspaces() {
  const client = useQueryClient();
  const { data: workspaces, error, refetch } = useQuery(workspacesQuery);
  const [shown, setShown] = useState<Workspace>();
  const [name, setName] = useState("");
  const creating = useMutation({
    mutationFn: () => api.post<Workspace>("/admin/workspaces", { name }, { tenant_id: null }),
    onSuccess: () => {
      setName("");
      return client.invalidateQueries(workspacesQuery);
    },
  });
  if (error && !workspaces) return <ErrorState error={error} retry={() => void refetch()} />;
  return (
    <>
      <form onSubmit={submits(() => creating.mutate())} className="mb-3 flex items-end gap-2 max-sm:flex-wrap">
        <div className="w-72">
          <Field label="New workspace" error={creating.error?.message}>
            {(props) => (
              <Input
                {...props}
                required
                maxLength={256}
                placeholder="Name"
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
        </div>
        <Button type="submit" disabled={creating.isPending}>
          Create
        </Button>
      </form>
      {workspaces ? (
        <Table
          name="Workspaces"
          rows={workspaces}
          columns={COLUMNS}
          keyOf={(workspace) => workspace.tenant_id}
          selected={shown?.tenant_id}
          onSelect={(_, workspace) => setShown(workspace)}
          onOpen={setShown}
          className="max-h-[70vh] rounded-lg border border-line"
        />
      ) : (
        <SkeletonRows label="Loading workspaces" rows={3} />
      )}
      <Members workspace={shown} onClose={() => setShown(undefined)} />
    </>
  );
}

const COLUMNS: Column<Workspace>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ name }) => <span className="font-medium">{name}</span>,
    width: 240,
    grow: true,
    card: "title",
  },
  { id: "id", header: "ID", cell: ({ tenant_id }) => <code>{tenant_id}</code>, width: 330 },
  { id: "created", header: "Created", cell: ({ created_at }) => <RelativeTime time={created_at} />, width: 120 },
];
