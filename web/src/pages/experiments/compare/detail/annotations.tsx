import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { ExampleWithRuns } from "../../../../../../src/experiments/contract/comparison.ts";
import type { Feedback } from "../../../../../../src/experiments/contract/feedback/feedback.ts";
import { api } from "../../../../api/request.ts";
import { Button } from "../../../../ui/button.tsx";
import { Confirm } from "../../../../ui/overlay/confirm.tsx";
import { toast } from "../../../../ui/overlay/toast.tsx";
import { isFailed } from "../../sessions/scores.tsx";
import { ChangeMark } from "../change-mark.tsx";
import { comparisonKey } from "../queries.ts";
import { changeText, scoreText, signOf, type View } from "../view.ts";
import { AnnotationForm, type FeedbackDraft } from "./annotation-form.tsx";

/** Lists, adds, edits and deletes a run's feedback. Each change refetches the statistics. */
export function Annotations({
  view,
  run,
  baseline,
}: {
  view: View;
  run: ExampleWithRuns["runs"][number];
  /** Feedback on the baseline's run. Undefined for the baseline itself. */
  baseline: readonly Feedback[] | undefined;
}) {
  const client = useQueryClient();
  const [editing, setEditing] = useState<Feedback | "new">();
  const [deleting, setDeleting] = useState<Feedback>();
  const refetch = () => client.invalidateQueries({ queryKey: comparisonKey(view.dataset_id) });
  const saving = useMutation({
    mutationFn: ({ key, ...draft }: FeedbackDraft) =>
      editing === "new"
        ? api.post("/api/v1/feedback", { run_id: run.id, key, ...draft, feedback_source: { type: "app" } })
        : api.patch(`/api/v1/feedback/${editing?.id}`, draft),
    onSuccess: async () => {
      setEditing(undefined);
      toast("Score saved");
      await refetch();
    },
  });
  const edit = (which: typeof editing) => {
    saving.reset();
    setEditing(which);
  };
  const form = (feedback: Feedback | undefined) => (
    <AnnotationForm
      feedback={feedback}
      keys={view.keys}
      error={saving.error?.message}
      isBusy={saving.isPending}
      onSave={(draft) => saving.mutate(draft)}
      onCancel={() => setEditing(undefined)}
    />
  );
  return (
    <div className="text-table">
      <ul className="divide-y divide-line" aria-label="Scores">
        {run.feedbacks.map((feedback) => (
          <li key={feedback.id} className="py-1">
            {editing !== "new" && editing?.id === feedback.id ? (
              form(feedback)
            ) : (
              <div className="flex min-h-6 items-center gap-x-3 max-sm:flex-wrap">
                <span className="w-32 shrink-0 truncate font-medium max-sm:w-24" title={feedback.key}>
                  {feedback.key}
                </span>
                <FeedbackValue view={view} feedback={feedback} baseline={baseline} />
                <span className="min-w-0 flex-1 break-words text-text-2 max-sm:order-last max-sm:basis-full">
                  {feedback.comment}
                </span>
                <span className="text-text-3 max-sm:ml-auto">{feedback.feedback_source?.type}</span>
                <span className="flex">
                  <Button look="quiet" small square aria-label={`Edit ${feedback.key}`} onClick={() => edit(feedback)}>
                    <Pencil size={13} />
                  </Button>
                  <Button
                    look="quiet"
                    small
                    square
                    aria-label={`Delete ${feedback.key}`}
                    onClick={() => setDeleting(feedback)}
                  >
                    <Trash2 size={13} />
                  </Button>
                </span>
              </div>
            )}
          </li>
        ))}
      </ul>
      {editing === "new" ? (
        form(undefined)
      ) : (
        <Button look="quiet" small className="mt-1" onClick={() => edit("new")}>
          <Plus size={13} aria-hidden /> Add score
        </Button>
      )}
      <Confirm
        open={deleting !== undefined}
        onClose={() => setDeleting(undefined)}
        title={`Delete “${deleting?.key}” from this run?`}
        action="Delete"
        onConfirm={async () => {
          await api.delete(`/api/v1/feedback/${deleting?.id}`);
          await refetch();
          toast("Score deleted");
        }}
      >
        The experiment's statistics will be recomputed.
      </Confirm>
    </div>
  );
}

/** Label or score of a feedback record, with the change from the baseline. */
function FeedbackValue({
  view,
  feedback,
  baseline,
}: {
  view: View;
  feedback: Feedback;
  baseline: readonly Feedback[] | undefined;
}) {
  const { key: name, score, value } = feedback;
  const key = view.keys.find((known) => known.name === name);
  const before = baseline?.find((other) => other.key === name)?.score ?? null;
  const label =
    typeof value === "string" ? value : value === null || value === undefined ? undefined : JSON.stringify(value);
  const scoreLabel = score === null || !key ? undefined : scoreText(key, score);
  if (isFailed(feedback)) return <span className="min-w-20 font-mono text-error">failed</span>;
  return (
    <span className="flex min-w-20 items-center gap-2 font-mono">
      {label !== undefined && <span className="max-w-48 truncate">{label}</span>}
      {scoreLabel !== undefined && scoreLabel !== label && <span className="font-semibold">{scoreLabel}</span>}
      {scoreLabel === undefined && label === undefined && <span className="text-text-3">–</span>}
      {key && score !== null && before !== null && before !== score && (
        <ChangeMark sign={signOf(score - before, key.isLowerBetter)}>{changeText(key, score, before)}</ChangeMark>
      )}
    </span>
  );
}
