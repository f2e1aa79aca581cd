import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Check, ListTree, SkipForward } from "lucide-react";
import { type ReactNode, useId } from "react";
import type { QueueOverview } from "../../../../src/experiments/contract/annotation-queues/app-queues.ts";
import type { QueueRun } from "../../../../src/experiments/contract/annotation-queues/items.ts";
import { api } from "../../api/request.ts";
import { useKeys } from "../../frame/keys.ts";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/code-block.tsx";
import { FormError } from "../../ui/form/field.tsx";
import { ScrollRegion } from "../../ui/layout.tsx";
import { Progress } from "../../ui/progress.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { Status } from "../../ui/status.tsx";
import { EXPERIMENTS, exampleQuery } from "../experiments/queries.ts";
import { feedbackQuery, TRACES } from "../traces/queries.ts";
import { Payload } from "../traces/run/payload.tsx";
import { InputOutput } from "../traces/run/run-panel.tsx";
import { RunTypeIcon } from "../traces/run-types.tsx";
import { QUEUES } from "./queries.ts";
import { RubricForm, type SaveFeedback } from "./rubric-form.tsx";

/** An item with the run on the left, the rubric on the right, and the progress below. */
export function Review({ queue, item, onSkip }: { queue: QueueOverview; item: QueueRun; onSkip(): void }) {
  const client = useQueryClient();
  const form_id = useId();
  // The form is shown with the feedback that the user has given before.
  const hasForm = useQuery(feedbackQuery(item.id)).data !== undefined;
  const completing = useMutation({
    mutationFn: async (save: SaveFeedback) => {
      await save();
      await api.post(`/api/v1/annotation-queues/status/${item.queue_run_id}`, { status: "completed" });
    },
    onSettled: () =>
      Promise.all([QUEUES, TRACES, EXPERIMENTS].map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
  const { needs_my_review, needs_others_review, archived } = queue.items;
  const complete = () => (document.getElementById(form_id) as HTMLFormElement | null)?.requestSubmit();
  const skip = () => {
    completing.reset();
    onSkip();
  };
  useKeys({
    d: { does: "Save feedback and go to the next item", run: complete },
    "mod+enter": { does: "Save feedback and go to the next item, even while typing", run: complete },
    s: { does: "Skip this item", run: () => completing.isPending || skip() },
  });
  return (
    <>
      <div className="flex min-h-0 flex-1 max-lg:flex-col max-lg:overflow-y-auto">
        <ScrollRegion
          key={item.queue_run_id}
          label="Run"
          className="min-w-0 flex-1 -outline-offset-2 px-6 py-4 max-sm:px-4 lg:overflow-y-auto"
        >
          <RunOfItem item={item} />
        </ScrollRegion>
        <section
          aria-label="Review"
          className="w-96 shrink-0 border-line px-5 py-4 max-lg:w-full max-lg:border-t max-sm:px-4 lg:overflow-y-auto lg:border-l"
        >
          <RubricForm
            key={item.queue_run_id}
            id={form_id}
            queue={queue}
            item={item}
            onSubmit={(save) => completing.isPending || completing.mutate(save)}
          />
        </section>
      </div>
      <footer className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-2 border-line border-t bg-sunken px-6 py-2.5 max-sm:px-4">
        <div role="status" className="min-w-28 flex-1">
          <Progress
            label="Reviewed"
            done={needs_others_review + archived}
            total={needs_my_review + needs_others_review + archived}
          />
        </div>
        <FormError error={completing.error} />
        <span className="ml-auto flex gap-2">
          <Button disabled={completing.isPending} aria-keyshortcuts="s" onClick={skip}>
            <SkipForward size={14} aria-hidden /> Skip <Shortcut>S</Shortcut>
          </Button>
          <Button
            look="primary"
            type="submit"
            form={form_id}
            disabled={!hasForm || completing.isPending}
            aria-keyshortcuts="d"
          >
            <Check size={14} aria-hidden /> Done <Shortcut>D</Shortcut>
          </Button>
        </span>
      </footer>
    </>
  );
}

const Shortcut = ({ children }: { children: ReactNode }) => (
  <kbd aria-hidden className="max-sm:hidden">
    {children}
  </kbd>
);

function RunOfItem({ item }: { item: QueueRun }) {
  const example_id = item.reference_example_id ?? undefined;
  const { data: example } = useQuery({ ...exampleQuery(example_id ?? ""), enabled: example_id !== undefined });
  return (
    <div className="grid grid-cols-1 gap-5">
      <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1 text-table">
        <RunTypeIcon run_type={item.run_type} />
        <h2 className="min-w-0 max-w-full truncate font-semibold text-body">{item.name || "Unnamed run"}</h2>
        <Id id={item.id} />
        <Status status={item.status} />
        <span className="text-text-2">
          <RelativeTime time={item.start_time} />
        </span>
        <Button asChild small className="ml-auto">
          <Link to="/runs/$id" params={{ id: item.id }}>
            <ListTree size={13} aria-hidden /> Open trace
          </Link>
        </Button>
      </div>
      <InputOutput run={item} />
      {example?.outputs && <Payload title="Reference output" value={example.outputs} />}
    </div>
  );
}
