import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { MessageSquarePlus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { send } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/code-block.tsx";
import { Checkbox } from "../../ui/form/field.tsx";
import { Confirm } from "../../ui/overlay/confirm.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Configuration } from "./configuration.tsx";
import { AssistantDrawing } from "./drawing.tsx";
import { type AgentView, agentRoute, type Section } from "./page.ts";
import { assistantQuery, assistantsQuery } from "./queries.ts";
import { Versions } from "./versions.tsx";

const CRUMBS = [{ label: "Agents", to: "/agents" }];

export function AgentPage() {
  const { assistant_id } = agentRoute.useParams();
  const { section = "graph" } = agentRoute.useSearch();
  const navigate = agentRoute.useNavigate();
  const { data: assistant, error, refetch } = useQuery(assistantQuery(assistant_id));
  // A failed refetch keeps the page, whose forms may contain changes.
  if (error && !assistant)
    return (
      <Page title="Assistant" crumbs={CRUMBS}>
        <ErrorState error={error} retry={() => void refetch()} />
      </Page>
    );
  if (!assistant)
    return (
      <Page title="…" crumbs={CRUMBS}>
        <SkeletonRows label="Loading assistant" />
      </Page>
    );
  return (
    <Page
      title={assistant.name}
      crumbs={CRUMBS}
      beside={
        <span className="flex items-center gap-2 max-sm:hidden">
          <Badge mono>{assistant.graph_id}</Badge>
          <Badge>version {assistant.version}</Badge>
          <Id id={assistant.assistant_id} />
        </span>
      }
      actions={<Actions assistant={assistant} />}
    >
      {assistant.description && <p className="mb-2 max-w-3xl text-text-2">{assistant.description}</p>}
      <Tabs<Section>
        label="Assistant"
        value={section}
        onChange={(chosen) =>
          void navigate({
            search: (before: AgentView) => ({ ...before, section: chosen === "graph" ? undefined : chosen }),
          })
        }
        tabs={[
          { value: "graph", label: "Graph", content: <GraphSection assistant_id={assistant_id} /> },
          {
            value: "configuration",
            label: "Configuration",
            content: <Configuration key={assistant_id} assistant={assistant} />,
          },
          { value: "versions", label: "Versions", content: <Versions assistant={assistant} /> },
        ]}
      />
    </Page>
  );
}

function GraphSection({ assistant_id }: { assistant_id: string }) {
  const { xray = false } = agentRoute.useSearch();
  const navigate = agentRoute.useNavigate();
  return (
    <>
      <Checkbox
        label="Expand subgraphs"
        checked={xray}
        onChange={({ target }) =>
          void navigate({
            search: (before: AgentView) => ({ ...before, xray: target.checked || undefined }),
            replace: true,
          })
        }
      />
      <AssistantDrawing assistant_id={assistant_id} xray={xray} />
    </>
  );
}

function Actions({ assistant: { assistant_id, metadata, name } }: { assistant: Assistant }) {
  const client = useQueryClient();
  const navigate = agentRoute.useNavigate();
  const [deleting, setDeleting] = useState(false);
  return (
    <>
      <Button asChild look="primary">
        <Link to="/threads/new" search={{ assistant: assistant_id }}>
          <MessageSquarePlus size={15} aria-hidden /> New thread
        </Link>
      </Button>
      {/* A graph's default assistant cannot be deleted. */}
      {metadata.created_by !== "system" && (
        <Button look="danger" square aria-label="Delete assistant" onClick={() => setDeleting(true)}>
          <Trash2 size={15} />
        </Button>
      )}
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete assistant “${name}”?`}
        action="Delete"
        onConfirm={async () => {
          await send("DELETE", `/assistants/${assistant_id}`);
          await navigate({ to: "/agents", search: {} });
          client.removeQueries(assistantQuery(assistant_id));
          await client.invalidateQueries(assistantsQuery);
          toast(`“${name}” deleted`);
        }}
      >
        The assistant's versions and crons are deleted, and its active runs are stopped. Its threads are kept. This
        cannot be undone.
      </Confirm>
    </>
  );
}
