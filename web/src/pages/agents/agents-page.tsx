import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { Page } from "../../frame/header.tsx";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { DebouncedInput } from "../../ui/form/debounced-input.tsx";
import { Select } from "../../ui/form/select.tsx";
import { HueDot } from "../../ui/hue-dot.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { Table } from "../../ui/table/table.tsx";
import { NewAssistant } from "./new-assistant.tsx";
import { type AgentsSearch, agentsRoute } from "./page.ts";
import { assistantsQuery } from "./queries.ts";

const ALL = "*";

export function AgentsPage() {
  const { graph, q = "" } = agentsRoute.useSearch();
  const navigate = agentsRoute.useNavigate();
  const [isCreating, setCreating] = useState(false);
  const { data: assistants, error, refetch } = useQuery(assistantsQuery);
  useKeys({ n: { does: "New assistant", run: () => setCreating(true) } });
  const graphs = [...new Set(assistants?.map(({ graph_id }) => graph_id))].sort();
  return (
    <Page
      fill
      title="Agents"
      actions={
        <Button look="primary" onClick={() => setCreating(true)}>
          <Plus size={15} aria-hidden /> New assistant
        </Button>
      }
    >
      <div className="flex flex-wrap items-center gap-2 border-line border-b px-6 py-2 max-sm:px-4">
        <DebouncedInput
          aria-label="Search assistants"
          placeholder="Search name or description"
          className="max-w-64"
          value={q}
          onChange={(text) =>
            void navigate({ search: (before: AgentsSearch) => ({ ...before, q: text }), replace: true })
          }
        />
        <Select
          aria-label="Graph"
          value={graph ?? ALL}
          options={[{ value: ALL, label: "All graphs" }, ...graphs.map((each) => ({ value: each, label: each }))]}
          onChange={(chosen) =>
            void navigate({
              search: (before: AgentsSearch) => ({ ...before, graph: chosen === ALL ? undefined : chosen }),
            })
          }
        />
      </div>
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {!error && !assistants && <SkeletonRows label="Loading assistants" height={56} />}
      {assistants && (
        <Table
          name="Assistants"
          className="flex-1"
          rowHeight={56}
          rows={byGraph(assistants, graph, q)}
          columns={COLUMNS}
          keyOf={({ assistant_id }) => assistant_id}
          onOpen={({ assistant_id }) => void navigate({ to: "/agents/$assistant_id", params: { assistant_id } })}
          empty={
            assistants.length > 0 ? (
              <EmptyState title="No assistants match" />
            ) : (
              <EmptyState title="No agents yet" command="npx threadmill dev --config langgraph.json">
                Each graph in a project's <code>langgraph.json</code> has a default assistant.
              </EmptyState>
            )
          }
        />
      )}
      {isCreating && <NewAssistant graph_id={graph} graphs={graphs} onClose={() => setCreating(false)} />}
    </Page>
  );
}

const isDefault = ({ metadata }: Assistant) => metadata.created_by === "system";

/** Returns the assistants that match the filters, sorted by graph and name. Each graph's default assistant comes first. */
function byGraph(assistants: readonly Assistant[], graph: string | undefined, q: string): Assistant[] {
  const query = q.toLowerCase();
  return assistants
    .filter(({ graph_id }) => graph === undefined || graph_id === graph)
    .filter(({ name, description }) => `${name}\n${description ?? ""}`.toLowerCase().includes(query))
    .sort(
      (a, b) =>
        a.graph_id.localeCompare(b.graph_id) ||
        Number(isDefault(b)) - Number(isDefault(a)) ||
        a.name.localeCompare(b.name),
    );
}

const COLUMNS: Column<Assistant>[] = [
  {
    id: "name",
    header: "Assistant",
    cell: (assistant) => (
      <div className="min-w-0">
        <Link
          to="/agents/$assistant_id"
          params={{ assistant_id: assistant.assistant_id }}
          className="block truncate font-medium hover:underline"
        >
          <HueDot name={assistant.name} />
          {assistant.name}
        </Link>
        <div className="truncate font-normal text-table text-text-3">{assistant.description ?? " "}</div>
      </div>
    ),
    width: 420,
    grow: true,
    card: "title",
  },
  { id: "graph", header: "Graph", cell: ({ graph_id }) => <Badge mono>{graph_id}</Badge>, width: 180 },
  {
    id: "kind",
    header: "Type",
    cell: (assistant) => (isDefault(assistant) ? "Default" : "Custom"),
    width: 150,
    card: "hidden",
  },
  { id: "version", header: "Version", cell: ({ version }) => version, numeric: true, width: 90 },
  { id: "updated", header: "Updated", cell: ({ updated_at }) => <RelativeTime time={updated_at} />, width: 120 },
  {
    id: "thread",
    header: "",
    cell: ({ assistant_id, name }) => (
      <Button asChild small>
        <Link to="/threads/new" search={{ assistant: assistant_id }} aria-label={`New thread with ${name}`}>
          New thread
        </Link>
      </Button>
    ),
    width: 120,
  },
];
