import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { Thread } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Page } from "../../frame/header.tsx";
import { AssistantDrawing } from "../agents/drawing.tsx";
import { assistantsQuery } from "../agents/queries.ts";
import { ChooseAgent } from "./choose-agent.tsx";
import { Composer } from "./composer.tsx";
import { newThreadRoute } from "./page.ts";
import { startRun } from "./start-run.ts";

const CRUMBS = [{ label: "Threads", to: "/threads" }];

/** A thread that is not there before something is sent. */
export function NewThreadPage() {
  const { assistant: assistant_id } = newThreadRoute.useSearch();
  const navigate = newThreadRoute.useNavigate();
  const client = useQueryClient();
  const { data: assistants } = useQuery(assistantsQuery);
  const chosen = assistants?.find((each) => each.assistant_id === assistant_id);
  const begin = async (input: unknown) => {
    if (!assistant_id) throw new Error("Choose an assistant first.");
    const { thread_id } = await api.post<Thread>("/threads", {});
    await startRun(client, thread_id, { assistant_id, input });
    await navigate({ to: "/threads/$thread_id", params: { thread_id }, search: {} });
  };
  return (
    <Page fill title="New thread" crumbs={CRUMBS}>
      <div className="min-h-0 flex-1 overflow-y-auto py-6">
        {chosen ? (
          <div className="mx-auto grid max-w-3xl gap-4 px-6 max-sm:px-4">
            <p className="text-text-2">
              {chosen.description ?? `What you send is given to ${chosen.name}, and begins a thread.`}
            </p>
            <AssistantDrawing assistant_id={chosen.assistant_id} />
          </div>
        ) : (
          <ChooseAgent />
        )}
      </div>
      {assistant_id && (
        <div className="mx-auto w-full max-w-3xl px-6 pb-4 max-sm:px-4">
          <Composer
            key={assistant_id}
            assistant_id={assistant_id}
            onAssistant={(assistant) => void navigate({ search: { assistant }, replace: true })}
            isChat={false}
            sendLabel="Send"
            onSend={begin}
          />
        </div>
      )}
    </Page>
  );
}
