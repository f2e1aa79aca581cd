import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Page } from "../../frame/header.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import { AssistantDrawing } from "../agents/drawing.tsx";
import { assistantsQuery } from "../agents/queries.ts";
import { NewThread } from "./new-thread.tsx";
import { newThreadRoute } from "./page.ts";

const CRUMBS = [{ label: "Threads", to: "/threads" }];

/** Page for a new thread. */
export function NewThreadPage() {
  const { assistant: assistant_id } = newThreadRoute.useSearch();
  const navigate = newThreadRoute.useNavigate();
  const { data: assistants } = useQuery(assistantsQuery);
  const chosen = assistants?.find((each) => each.assistant_id === assistant_id);
  return (
    <Page fill title="New thread" crumbs={CRUMBS}>
      <div className="min-h-0 flex-1 overflow-y-auto py-6">
        {chosen ? (
          <div className="mx-auto grid max-w-3xl gap-4 px-6 max-sm:px-4">
            <p className="text-text-2">
              {chosen.description ?? `Send a message to start a thread with ${chosen.name}.`}
            </p>
            <AssistantDrawing assistant_id={chosen.assistant_id} />
          </div>
        ) : (
          <ChooseAgent />
        )}
      </div>
      {assistant_id && (
        <div className="mx-auto w-full max-w-3xl px-6 pb-4 max-sm:px-4">
          <NewThread
            assistant_id={assistant_id}
            onAssistant={(assistant) => void navigate({ search: { assistant }, replace: true })}
          />
        </div>
      )}
    </Page>
  );
}

/** The user selects the new thread's assistant first, because the input form depends on the assistant. */
function ChooseAgent() {
  const { data: assistants, error, refetch } = useQuery(assistantsQuery);
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!assistants) return <SkeletonRows label="Loading agents" height={56} />;
  if (assistants.length === 0)
    return (
      <EmptyState title="No agents yet" command="npx threadmill dev --config langgraph.json">
        Add a graph to a project's <code>langgraph.json</code>, then start the server.
      </EmptyState>
    );
  return (
    <section aria-label="Agents" className="mx-auto grid max-w-3xl gap-3 px-6 max-sm:px-4">
      <h2 className="font-semibold text-body">Select an agent</h2>
      <ul className="grid grid-cols-2 gap-2 max-sm:grid-cols-1">
        {assistants.map(({ assistant_id, name, graph_id, description }) => (
          <li key={assistant_id} className="grid">
            <Link
              to="/threads/new"
              search={{ assistant: assistant_id }}
              className="grid content-start gap-0.5 rounded-lg border border-line px-3 py-2 hover:bg-hover"
            >
              <span className="flex min-w-0 items-center gap-2">
                <span className="truncate font-medium">{name}</span>
                {name !== graph_id && <Badge mono>{graph_id}</Badge>}
              </span>
              <span className="text-table text-text-2">{description ?? "No description"}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
