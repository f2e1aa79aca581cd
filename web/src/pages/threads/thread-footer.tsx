import { CircleAlert, CirclePause, Play } from "lucide-react";
import { type RefObject, useLayoutEffect, useRef, useState } from "react";
import type { ThreadState, ThreadTask } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Composer } from "./composer.tsx";
import { messagesOf } from "./conversation/messages.ts";
import { InterruptCard } from "./interrupt/interrupt-card.tsx";
import type { RunRequest } from "./queries.ts";
import { withCounts } from "./side/steps.ts";
import type { ThreadModel } from "./use-thread.ts";
import { openTasks } from "./use-thread.ts";

/** Shows the thread's open interrupts and the input of the next run. */
export function ThreadFooter({ model }: { model: ThreadModel }) {
  const { thread, isPast, search, live, active_run, runs, state, newest, values } = model;
  const { assistant_id, show, start } = model;
  // A message that continues another state does not skip the question.
  const needsInput = model.needsInput && !isPast;
  const isIdle = !active_run && !live;
  // The choice to skip is stored per checkpoint, so that it does not apply to the next interrupt.
  const interrupted_at = newest.checkpoint?.checkpoint_id;
  const [skipped_at, setSkippedAt] = useState<string | null>();
  const isSkipping = needsInput && skipped_at === interrupted_at;
  const box = useRef<HTMLDivElement>(null);
  useFocusAfter(needsInput, box);
  return (
    <div ref={box} tabIndex={-1} className="max-h-[65%] overflow-y-auto outline-none">
      <div className="mx-auto grid w-full max-w-3xl gap-3 px-6 pt-2 pb-4 max-sm:px-4">
        {isPast && (
          <p className="flex flex-wrap items-center gap-2 rounded-lg bg-selected px-3 py-1.5 text-table">
            <span className="flex-1">
              {search.checkpoint
                ? "You are viewing a past state. New messages continue from this state."
                : "You are viewing an older branch. New messages continue this branch."}
            </span>
            <Button small onClick={() => show({ checkpoint: undefined, branch: undefined })}>
              Back to latest
            </Button>
          </p>
        )}
        {isIdle && state && <OpenCards state={state} isPast={search.checkpoint !== undefined} onAnswer={start} />}
        {needsInput && !isSkipping ? (
          <p className="flex flex-wrap items-center justify-between gap-2 text-table text-text-2">
            The agent needs your input.
            <Button small look="quiet" onClick={() => setSkippedAt(interrupted_at)}>
              Send a message instead
            </Button>
          </p>
        ) : (
          <>
            {isSkipping && <SkipWarning onBack={() => setSkippedAt(undefined)} />}
            <Composer
              draft_key={thread.thread_id}
              assistant_id={assistant_id}
              onAssistant={(assistant) => show({ assistant }, true)}
              isChat={messagesOf(values) !== undefined}
              hasRuns={runs.length > 0}
              sendLabel={
                isSkipping
                  ? "Send and skip the question"
                  : isPast
                    ? "Send from here"
                    : active_run
                      ? "Send after this run"
                      : "Send"
              }
              onSend={(input) => start({ input })}
            />
          </>
        )}
      </div>
    </div>
  );
}

/**
 * Focuses the footer when an interrupt takes the place of the input, or the input that of an interrupt, because the element that was
 * focused is removed. The next Tab then reaches the first control of the footer instead of the side bar. A layout effect, because a Tab
 * that is pressed between the removal and a passive effect would move the focus to the side bar.
 */
function useFocusAfter(needsInput: boolean, box: RefObject<HTMLElement | null>) {
  const before = useRef(needsInput);
  useLayoutEffect(() => {
    if (before.current === needsInput) return;
    before.current = needsInput;
    if (document.activeElement === document.body) box.current?.focus({ preventScroll: true });
  }, [needsInput, box]);
}

/** The open interrupts of a state. Without interrupts, but with nodes that have not run, a card to continue. */
export function OpenCards({
  state,
  isPast = false,
  hasKeys = false,
  onAnswer,
}: {
  state: ThreadState;
  isPast?: boolean;
  /** Whether the first card has shortcuts. */
  hasKeys?: boolean;
  onAnswer(request: Pick<RunRequest, "input" | "command">): Promise<unknown>;
}) {
  const tasks = openTasks(state);
  const [first] = tasks.flatMap(({ interrupts }) => interrupts);
  const checkpoint_id = state.checkpoint?.checkpoint_id;
  if (!first && !isPast && state.next.length > 0)
    return <ContinueCard key={checkpoint_id} state={state} onContinue={() => onAnswer({ input: null })} />;
  return tasks.flatMap(({ id, name, interrupts }) =>
    interrupts.map((interrupt) => (
      <InterruptCard
        key={`${checkpoint_id} ${id} ${interrupt.id}`}
        interrupt={interrupt}
        node={name}
        hasKeys={hasKeys && interrupt === first}
        onAnswer={(answer) => onAnswer({ command: { resume: resumeOf(tasks, interrupt.id, answer) } })}
      />
    )),
  );
}

/** Warns that a message drops the open interrupt, because the graph starts again with the new input. */
const SkipWarning = ({ onBack }: { onBack(): void }) => (
  <p className="flex flex-wrap items-center gap-2 rounded-lg border border-interrupted px-3 py-1.5 text-table">
    <CircleAlert size={14} className="shrink-0 text-interrupted" aria-hidden />
    <span className="min-w-48 flex-1">
      Your message skips the open question. To answer the question later, open its step in History.
    </span>
    <Button small onClick={onBack}>
      Answer the question
    </Button>
  </p>
);

/** Builds the resume value: the answer if only one interrupt is open, otherwise an object that maps the interrupt ID to the answer. */
const resumeOf = (tasks: readonly ThreadTask[], interrupt_id: string, answer: unknown): unknown =>
  tasks.flatMap(({ interrupts }) => interrupts).length > 1 ? { [interrupt_id]: answer } : answer;

/** Resumes a thread that stopped without an interrupt: at a breakpoint, or because of a cancellation or failure. */
function ContinueCard({ state: { next, tasks }, onContinue }: { state: ThreadState; onContinue(): Promise<unknown> }) {
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const failed = tasks.filter(({ error }) => error).map(({ name }) => name);
  const hasFailed = failed.length > 0;
  const resume = async () => {
    setState({ busy: true });
    await onContinue().catch((error: Error) => setState({ error: error.message }));
  };
  return (
    <section
      aria-label={hasFailed ? "Failed run" : "Paused run"}
      className="flex flex-wrap items-center gap-2 rounded-xl border border-line-strong bg-raised px-4 py-2.5"
    >
      {hasFailed ? (
        <CircleAlert size={16} className="shrink-0 text-error" aria-hidden />
      ) : (
        <CirclePause size={16} className="shrink-0 text-interrupted" aria-hidden />
      )}
      <p className="min-w-0 flex-1">
        {hasFailed ? "Failed in " : "Paused before "}
        <span className="font-mono">{withCounts(hasFailed ? failed : next)}</span>.
      </p>
      <Button disabled={state.busy} onClick={() => void resume()}>
        <Play size={13} aria-hidden /> {hasFailed ? "Retry" : "Continue"}
      </Button>
      {state.error && (
        <p role="alert" className="w-full text-error text-table">
          {state.error}
        </p>
      )}
    </section>
  );
}
