import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Button } from "../../../ui/button.tsx";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Conversation } from "../conversation/conversation.tsx";
import {
  type ListedThread,
  labelOf,
  needsInput,
  type RunRequest,
  startRun,
  stateQuery,
  threadsKey,
} from "../queries.ts";
import { OpenCards } from "../thread-footer.tsx";
import { ThreadStatus } from "../thread-header.tsx";
import { useThreadEvents } from "../use-live-run.ts";

const NO_DURATIONS: ReadonlyMap<string, number> = new Map();

/** A waiting thread: its conversation, and its open interrupts with their answers. */
export function InboxThread({ thread, position }: { thread: ListedThread; position: string }) {
  const { thread_id, updated_at, metadata } = thread;
  const client = useQueryClient();
  const navigate = useNavigate();
  const { queryKey, queryFn } = stateQuery(thread_id, undefined);
  // A thread that pauses again stays in the list. Its state, and the cards of its interrupts, have to be replaced.
  const { data: state, error, refetch } = useQuery({ queryKey: [...queryKey, updated_at], queryFn });
  useThreadEvents(thread_id);
  const answer = async (request: Pick<RunRequest, "input" | "command">) => {
    await startRun(client, thread_id, { assistant_id: String(metadata.assistant_id), ...request });
    const open = () => void navigate({ to: "/threads/$thread_id", params: { thread_id }, search: {} });
    toast(`Answer sent: ${labelOf(thread)}`, { action: { label: "Open thread", run: open } });
    await client.invalidateQueries({ queryKey: threadsKey });
  };
  return (
    <section aria-label="Selected thread" className="flex min-w-0 flex-1 flex-col">
      <header className="flex items-center gap-3 border-line border-b px-6 py-1.5">
        <h2 className="min-w-0 flex-1 truncate font-medium text-body">{labelOf(thread)}</h2>
        <span className="shrink-0 text-table text-text-3">{position}</span>
        <ThreadStatus status={thread.status} needsInput={needsInput(thread)} />
        <Button asChild small>
          <Link to="/threads/$thread_id" params={{ thread_id }} search={{}}>
            Open thread
          </Link>
        </Button>
      </header>
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {!state && !error && <SkeletonRows label="Loading thread" height={56} />}
      {state && (
        <>
          <ScrollRegion label="Conversation" className="flex min-h-0 flex-1 flex-col-reverse overflow-y-auto">
            <div className="w-full min-w-0 flex-1">
              <Conversation values={state.values} live={undefined} durations={NO_DURATIONS} error={null} />
            </div>
          </ScrollRegion>
          <div className="mx-auto grid max-h-[65%] w-full max-w-3xl gap-3 overflow-y-auto px-6 pt-2 pb-4">
            <OpenCards state={state} hasKeys onAnswer={answer} />
          </div>
        </>
      )}
    </section>
  );
}
