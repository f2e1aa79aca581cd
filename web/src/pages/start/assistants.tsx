import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { MessagesSquare } from "lucide-react";
import { useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { useCredentials } from "../../api/credentials.ts";
import { Button } from "../../ui/button.tsx";
import { CodeBlock } from "../../ui/code-block.tsx";
import { classes } from "../../ui/layout.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { Badge } from "../../ui/status.tsx";
import { curlOf } from "./curl.ts";
import { assistantsQuery, MAX_LISTED, schemasQuery } from "./queries.ts";

export function Assistants({ address }: { address: string }) {
  const { data: found, error, refetch } = useQuery(assistantsQuery);
  const [chosen, setChosen] = useState<string>();
  const assistants = found?.slice(0, MAX_LISTED);
  const at = assistants?.find(({ assistant_id }) => assistant_id === chosen) ?? assistants?.[0];
  return (
    <section aria-label="Agents" className="grid grid-cols-1 gap-3">
      <h2 className="font-semibold text-body">Agents</h2>
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : !assistants ? (
        <SkeletonRows label="Loading assistants" rows={4} height={56} />
      ) : !at ? (
        <EmptyState title="No agents yet" command="npx threadmill dev --config langgraph.json">
          Start the server with a project's <code>langgraph.json</code>.
        </EmptyState>
      ) : (
        <>
          <div className="grid grid-cols-2 gap-2 max-sm:grid-cols-1">
            {assistants.map((assistant) => (
              <Choice
                key={assistant.assistant_id}
                assistant={assistant}
                isChosen={assistant === at}
                onChoose={() => setChosen(assistant.assistant_id)}
              />
            ))}
          </div>
          {found && found.length > MAX_LISTED && (
            <p className="text-table text-text-3">The Agents page lists all agents.</p>
          )}
          <Button asChild look="primary" className="justify-self-start">
            <Link to="/threads/new" search={{ assistant: at.assistant_id }}>
              <MessagesSquare size={15} aria-hidden /> New thread with {at.name}
            </Link>
          </Button>
          <Command assistant={at} address={address} />
        </>
      )}
    </section>
  );
}

function Choice({
  assistant: { name, graph_id, description },
  isChosen,
  onChoose,
}: {
  assistant: Assistant;
  isChosen: boolean;
  onChoose(): void;
}) {
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      onClick={onChoose}
      className={classes(
        "grid content-start gap-0.5 rounded-lg border px-3 py-2 text-left",
        isChosen ? "border-accent-text bg-selected" : "border-line hover:bg-hover",
      )}
    >
      <span className="flex items-center gap-2">
        <span className="truncate font-medium">{name}</span>
        {name !== graph_id && <Badge mono>{graph_id}</Badge>}
      </span>
      <span className="text-table text-text-2">{description ?? "No description"}</span>
    </button>
  );
}

/** A command that runs the assistant once, with example input for its schema. */
function Command({ assistant, address }: { assistant: Assistant; address: string }) {
  const { data: schemas, isPending } = useQuery(schemasQuery(assistant.assistant_id));
  const { key } = useCredentials();
  const code = curlOf({ address, assistant, schema: schemas?.input_schema, needsKey: key !== undefined });
  return (
    <div className="grid grid-cols-1 gap-1.5">
      <p className="text-table text-text-2">
        Run <span className="font-medium text-text">{assistant.name}</span> from a terminal:
      </p>
      {isPending ? (
        // Placeholder with the command's height.
        <div
          role="status"
          aria-label="Loading input schema"
          className="rounded-lg border border-line bg-sunken px-3 py-1.5"
        >
          <pre className="invisible whitespace-pre-wrap break-words py-0.5">{code}</pre>
        </div>
      ) : (
        <CodeBlock code={code} label="Copy command" />
      )}
      <p className="min-h-[18px] text-table text-text-3">
        {!isPending &&
          !schemas?.input_schema &&
          "The input schema is not available. Adjust the example input if needed."}
      </p>
    </div>
  );
}
