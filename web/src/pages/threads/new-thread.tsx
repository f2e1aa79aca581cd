import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { Thread } from "../../../../src/agent-server/contract/records.ts";
import { api } from "../../api/request.ts";
import { Composer, NEW_DRAFT } from "./composer.tsx";
import { startRun } from "./queries.ts";

/** The input of a new thread. The server creates the thread when the first input is sent. */
export function NewThread({
  assistant_id,
  onAssistant,
}: {
  assistant_id: string | undefined;
  onAssistant(assistant_id: string): void;
}) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const start = async (input: unknown, moveDraft: (thread_id: string) => void) => {
    if (!assistant_id) throw new Error("No assistant selected. Select an assistant, then send the message again.");
    const { thread_id } = await api.post<Thread>("/threads", {});
    await startRun(client, thread_id, { assistant_id, input });
    moveDraft(thread_id);
    await navigate({ to: "/threads/$thread_id", params: { thread_id }, search: {} });
  };
  return (
    <Composer
      draft_key={NEW_DRAFT}
      assistant_id={assistant_id}
      onAssistant={onAssistant}
      isChat={false}
      sendLabel="Send"
      onSend={start}
    />
  );
}
