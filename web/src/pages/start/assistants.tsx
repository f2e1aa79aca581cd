import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Assistant } from "../../../../src/agent-server/contract/records.ts";
import { useCredentials } from "../../api/credentials.ts";
import { CodeBlock } from "../../ui/code-block.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { assistantsQuery } from "../agents/queries.ts";
import { NewThread } from "../threads/new-thread.tsx";
import { curlOf } from "./curl.ts";
import { schemasQuery } from "./queries.ts";

/** ID of the assistant that was chosen last, stored per browser. */
const CHOSEN = "threadmill.assistant";

/** Input of a new thread with the chosen agent, and the command that runs the agent from a terminal. */
export function Assistants({ address }: { address: string }) {
  const { data: assistants, error, refetch } = useQuery(assistantsQuery);
  const [chosen, setChosen] = useState(() => localStorage.getItem(CHOSEN));
  const choose = (assistant_id: string) => {
    localStorage.setItem(CHOSEN, assistant_id);
    setChosen(assistant_id);
  };
  const at = assistants?.find(({ assistant_id }) => assistant_id === chosen) ?? assistants?.[0];
  return (
    <section aria-label="New thread" className="grid grid-cols-1 gap-2">
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : !assistants ? (
        <SkeletonRows label="Loading agents" rows={2} height={56} />
      ) : !at ? (
        <EmptyState title="No agents yet" command="npx threadmill dev --config langgraph.json">
          Start the server with a project's <code>langgraph.json</code>.
        </EmptyState>
      ) : (
        <>
          <NewThread assistant_id={at.assistant_id} onAssistant={choose} />
          <details className="text-table">
            <summary className="w-fit cursor-pointer rounded text-text-2">Run {at.name} from a terminal</summary>
            <div className="mt-2">
              <Command assistant={at} address={address} />
            </div>
          </details>
        </>
      )}
    </section>
  );
}

/** A command that runs the assistant once, with example input for its schema. */
function Command({ assistant, address }: { assistant: Assistant; address: string }) {
  const { data: schemas, isPending } = useQuery(schemasQuery(assistant.assistant_id));
  const { key } = useCredentials();
  const code = curlOf({ address, assistant, schema: schemas?.input_schema, needsKey: key !== undefined });
  return (
    <div className="grid grid-cols-1 gap-1.5">
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
