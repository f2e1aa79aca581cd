import { CircleAlert } from "lucide-react";
import { useState } from "react";
import type { ThreadTask } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Composer } from "./composer.tsx";
import { GoOnCard } from "./go-on-card.tsx";
import { InterruptCard } from "./interrupt-card.tsx";
import { messagesOf } from "./messages.ts";
import { openTasks } from "./open-tasks.ts";
import type { ThreadModel } from "./use-thread.ts";

const NO_TASKS: readonly ThreadTask[] = [];

/** What the thread waits for, and what is sent next. */
export function ThreadFoot({ model }: { model: ThreadModel }) {
  const { isPast, live, working, runs, state, newest, values, assistant_id, asks, show, start } = model;
  const isAtRest = !working && !live;
  const tasks = isAtRest && state ? openTasks(state) : NO_TASKS;
  const isAsked = tasks.some(({ interrupts }) => interrupts.length > 0);
  // By its checkpoint: the next question is asked anew.
  const asked_at = newest.checkpoint?.checkpoint_id;
  const [instead_of, setInsteadOf] = useState<string | null>();
  const isInstead = asks && instead_of === asked_at;
  return (
    <div className="max-h-[65%] overflow-y-auto">
      <div className="mx-auto grid w-full max-w-3xl gap-3 px-6 pt-2 pb-4 max-sm:px-4">
        {isPast && (
          <p className="flex flex-wrap items-center gap-2 rounded-lg bg-selected px-3 py-1.5 text-table">
            <span className="flex-1">This is a past state. What you send goes on from it.</span>
            <Button small onClick={() => show({ checkpoint: undefined })}>
              Back to the newest
            </Button>
          </p>
        )}
        {tasks.flatMap(({ id, name, interrupts }) =>
          interrupts.map((interrupt) => (
            <InterruptCard
              key={`${state?.checkpoint?.checkpoint_id} ${id} ${interrupt.id}`}
              interrupt={interrupt}
              node={name}
              onAnswer={(answer) => start({ command: { resume: resumeOf(tasks, interrupt.id, answer) } })}
            />
          )),
        )}
        {isAtRest && !isPast && !isAsked && state && state.next.length > 0 && (
          <GoOnCard key={state.checkpoint?.checkpoint_id} next={state.next} onGoOn={() => start({ input: null })} />
        )}
        {asks && !isInstead ? (
          <p className="flex flex-wrap items-center justify-between gap-2 text-table text-text-2">
            The agent waits for an answer.
            <Button small look="quiet" onClick={() => setInsteadOf(asked_at)}>
              Write a message instead
            </Button>
          </p>
        ) : (
          <>
            {isInstead && <Dropped onBack={() => setInsteadOf(undefined)} />}
            <Composer
              assistant_id={assistant_id}
              onAssistant={(assistant) => show({ assistant }, true)}
              isChat={messagesOf(values) !== undefined}
              isLater={runs.length > 0}
              sendLabel={
                isInstead
                  ? "Send and drop the question"
                  : isPast
                    ? "Send from here"
                    : working
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

/** A new input goes past what waits: the graph starts anew with it. */
const Dropped = ({ onBack }: { onBack(): void }) => (
  <p className="flex flex-wrap items-center gap-2 rounded-lg border border-interrupted px-3 py-1.5 text-table">
    <CircleAlert size={14} className="shrink-0 text-interrupted" aria-hidden />
    <span className="min-w-48 flex-1">
      What you send drops the open question: it will never be answered, unless you come back to its step in the History.
    </span>
    <Button small onClick={onBack}>
      Keep the question
    </Button>
  </p>
);

/** One question is answered by a value; one of several by its id. */
const resumeOf = (tasks: readonly ThreadTask[], interrupt_id: string, answer: unknown): unknown =>
  tasks.flatMap(({ interrupts }) => interrupts).length > 1 ? { [interrupt_id]: answer } : answer;
