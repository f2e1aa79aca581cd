import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { ExampleWithRuns } from "../../../../../src/experiments/contract/comparison.ts";
import type { Feedback } from "../../../../../src/experiments/contract/feedback.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { Confirm } from "../../../ui/confirm.tsx";
import { toast } from "../../../ui/toast.tsx";
import { AnnotationForm, type Judgement } from "./annotation-form.tsx";
import { Move } from "./move.tsx";
import { comparisonKey } from "./queries.ts";
import { changeText } from "./score-change.ts";
import { scoreText, signOf, type View } from "./view.ts";

/** The scores and remarks on a run: read, changed, added, removed. What they add up to is renewed at once. */
export function Annotations({
  view,
  run,
  baseline,
}: {
  view: View;
  run: ExampleWithRuns["runs"][number];
  /** Those on the baseline's run; undefined where this is it. */
  baseline: readonly Feedback[] | undefined;
}) {
  const client = useQueryClient();
  const [editing, setEditing] = useState<Feedback | "new">();
  const [removing, setRemoving] = useState<Feedback>();
  const renew = () => client.invalidateQueries({ queryKey: comparisonKey(view.dataset_id) });
  const saving = useMutation({
    mutationFn: ({ key, ...judgement }: Judgement) =>
      editing === "new"
        ? api.post("/api/v1/feedback", { run_id: run.id, key, ...judgement, feedback_source: { type: "app" } })
        : api.patch(`/api/v1/feedback/${editing?.id}`, judgement),
    onSuccess: async () => {
      setEditing(undefined);
      toast("The score is saved.");
      await renew();
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
      onSave={(judgement) => saving.mutate(judgement)}
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
                <Said view={view} feedback={feedback} baseline={baseline} />
                <span className="min-w-0 flex-1 break-words text-text-2 max-sm:order-last max-sm:basis-full">
                  {feedback.comment}
                </span>
                <span className="text-text-3 max-sm:ml-auto">{feedback.feedback_source?.type}</span>
                <span className="flex">
                  <Button
                    look="quiet"
                    small
                    square
                    aria-label={`Change ${feedback.key}`}
                    onClick={() => edit(feedback)}
                  >
                    <Pencil size={13} />
                  </Button>
                  <Button
                    look="quiet"
                    small
                    square
                    aria-label={`Remove ${feedback.key}`}
                    onClick={() => setRemoving(feedback)}
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
          <Plus size={13} aria-hidden /> Add a score or remark
        </Button>
      )}
      <Confirm
        open={removing !== undefined}
        onClose={() => setRemoving(undefined)}
        title={`Remove “${removing?.key}” from this run?`}
        action="Remove"
        onConfirm={async () => {
          await api.delete(`/api/v1/feedback/${removing?.id}`);
          await renew();
          toast("It is removed.");
        }}
      >
        The figures of the experiment are computed anew without it.
      </Confirm>
    </div>
  );
}

/** Its label or score, and which way it is from the baseline's. */
function Said({
  view,
  feedback: { key: name, score, value },
  baseline,
}: {
  view: View;
  feedback: Feedback;
  baseline: readonly Feedback[] | undefined;
}) {
  const key = view.keys.find((known) => known.name === name);
  const before = baseline?.find((other) => other.key === name)?.score ?? null;
  const label =
    typeof value === "string" ? value : value === null || value === undefined ? undefined : JSON.stringify(value);
  const scored = score === null || !key ? undefined : scoreText(key, score);
  return (
    <span className="flex min-w-20 items-center gap-2 font-mono">
      {label !== undefined && <span className="max-w-48 truncate">{label}</span>}
      {scored !== undefined && scored !== label && <span className="font-semibold">{scored}</span>}
      {scored === undefined && label === undefined && <span className="text-text-3">–</span>}
      {key && score !== null && before !== null && before !== score && (
        <Move sign={signOf(score - before, key.isLowerBetter)}>{changeText(key, score, before)}</Move>
      )}
    </span>
  );
}
