import type { ThreadTask } from "../../../../src/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Composer } from "./composer.tsx";
import { GoOnCard } from "./go-on-card.tsx";
import { InterruptCard } from "./interrupt-card.tsx";
import { messagesOf } from "./messages.ts";
import type { ThreadModel } from "./use-thread.ts";

const NO_TASKS: readonly ThreadTask[] = [];

/** What the thread waits for, and what is sent next. */
export function ThreadFoot({ model }: { model: ThreadModel }) {
  const { isPast, live, working, state, values, assistant_id, show, start } = model;
  const isAtRest = !isPast && !working && !live;
  const tasks = isAtRest ? (state?.tasks ?? NO_TASKS) : NO_TASKS;
  const isAsked = tasks.some(({ interrupts }) => interrupts.length > 0);
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
        {isAtRest && !isAsked && state && state.next.length > 0 && (
          <GoOnCard key={state.checkpoint?.checkpoint_id} next={state.next} onGoOn={() => start({ input: null })} />
        )}
        <Composer
          assistant_id={assistant_id}
          onAssistant={(assistant) => show({ assistant }, true)}
          isChat={messagesOf(values) !== undefined}
          sendLabel={isPast ? "Send from here" : working ? "Send after this run" : "Send"}
          onSend={(input) => start({ input })}
        />
      </div>
    </div>
  );
}

/** One question is answered by a value; one of several by its id. */
const resumeOf = (tasks: readonly ThreadTask[], interrupt_id: string, answer: unknown): unknown =>
  tasks.flatMap(({ interrupts }) => interrupts).length > 1 ? { [interrupt_id]: answer } : answer;
