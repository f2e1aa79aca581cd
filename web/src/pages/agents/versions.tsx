import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Assistant, AssistantVersion } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Sheet } from "../../ui/overlay/dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { type AgentView, agentRoute } from "./page.ts";
import { assistantQuery, assistantsQuery, versionsQuery } from "./queries.ts";

interface Row extends AssistantVersion {
  changed: string;
}

export function Versions({ assistant }: { assistant: Assistant }) {
  const { assistant_id, version: current } = assistant;
  const { version: shown } = agentRoute.useSearch();
  const navigate = agentRoute.useNavigate();
  const client = useQueryClient();
  const { data, error, refetch } = useQuery(versionsQuery(assistant_id));
  const show = (version: number | undefined) =>
    void navigate({ search: (before: AgentView) => ({ ...before, version }), replace: shown !== undefined });
  const activating = useMutation({
    mutationFn: (version: number) => api.post<Assistant>(`/assistants/${assistant_id}/latest`, { version }),
    onSuccess: async (saved) => {
      client.setQueryData(assistantQuery(assistant_id).queryKey, saved);
      toast(`Version ${saved.version} is active`);
      await client.invalidateQueries(assistantsQuery);
    },
    onError: ({ message }) => toast(message, { error: true }),
  });
  const { mutate } = activating;
  const rows = useMemo(() => data && rowsOf(data), [data]);
  const columns = useMemo(() => columnsWith(current, mutate), [current, mutate]);
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!rows) return <SkeletonRows label="Loading versions" rows={3} />;
  const opened = rows.find(({ version }) => version === shown);
  return (
    <>
      <Table
        name="Versions"
        rows={rows}
        columns={columns}
        keyOf={({ version }) => String(version)}
        selected={shown === undefined ? undefined : String(shown)}
        onSelect={(_, { version }) => show(version)}
        onOpen={({ version }) => show(version)}
        className="max-h-[65vh] rounded-lg border border-line"
      />
      <Sheet
        open={opened !== undefined}
        onClose={() => show(undefined)}
        modal={false}
        width={520}
        title={`Version ${shown}`}
        description={opened?.changed}
        actions={
          opened && opened.version !== current ? (
            <Button small onClick={() => mutate(opened.version)}>
              Activate
            </Button>
          ) : undefined
        }
      >
        {opened && <JsonTree value={contentOf(opened)} open={3} />}
      </Sheet>
    </>
  );
}

const PARTS = ["name", "description", "graph_id", "config", "context", "metadata"] as const;

const contentOf = (version: AssistantVersion) => Object.fromEntries(PARTS.map((part) => [part, version[part]]));

/** @param versions newest version first */
const rowsOf = (versions: readonly AssistantVersion[]): Row[] =>
  versions.map((version, index) => {
    const before = versions[index + 1];
    if (!before) return { ...version, changed: "Initial version" };
    const parts = PARTS.filter((part) => JSON.stringify(version[part]) !== JSON.stringify(before[part]));
    return { ...version, changed: parts.length > 0 ? `Changed ${parts.join(", ")}` : "No changes" };
  });

const columnsWith = (current: number, activate: (version: number) => void): Column<Row>[] => [
  {
    id: "version",
    header: "Version",
    cell: ({ version }) => <span className="font-medium">Version {version}</span>,
    width: 120,
    card: "title",
  },
  { id: "changed", header: "Changes", cell: ({ changed }) => changed, width: 280, grow: true },
  { id: "created", header: "Created", cell: ({ created_at }) => <RelativeTime time={created_at} />, width: 120 },
  {
    id: "active",
    header: "Status",
    cell: ({ version }) =>
      version === current ? (
        <Status status="active" />
      ) : (
        <Button small aria-label={`Activate version ${version}`} onClick={() => activate(version)}>
          Activate
        </Button>
      ),
    width: 130,
  },
];
