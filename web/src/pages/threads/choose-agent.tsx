import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import { assistantsQuery } from "../agents/queries.ts";

/** What a thread begins with: until it is known whom it is for, nobody knows what may be written. */
export function ChooseAgent() {
  const { data: assistants, error, refetch } = useQuery(assistantsQuery);
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!assistants) return <SkeletonRows label="Fetching the agents" height={56} />;
  if (assistants.length === 0)
    return (
      <EmptyState title="No agents yet" command="npx threadmill dev --config langgraph.json">
        A thread is for one of the graphs that a project's <code>langgraph.json</code> names.
      </EmptyState>
    );
  return (
    <section aria-label="Agents" className="mx-auto grid max-w-3xl gap-3 px-6 max-sm:px-4">
      <h2 className="font-semibold text-body">Which agent is it for?</h2>
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
              <span className="text-table text-text-2">{description ?? "No description."}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
