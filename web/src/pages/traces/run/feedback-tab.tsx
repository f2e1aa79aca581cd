import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Feedback } from "../../../../../src/experiments/contract/feedback/feedback.ts";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { api } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { Confirm } from "../../../ui/overlay/confirm.tsx";
import { toast } from "../../../ui/overlay/toast.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Badge } from "../../../ui/status.tsx";
import { AnnotationForm, type FeedbackDraft } from "../../experiments/compare/detail/annotation-form.tsx";
import { EXPERIMENTS, keysQuery } from "../../experiments/queries.ts";
import { feedbackText } from "../../experiments/sessions/scores.tsx";
import { feedbackQuery, TRACES } from "../queries.ts";

/** Lists, adds and deletes the feedback on a run. */
export function FeedbackTab({ run }: { run: ExperimentRun }) {
  const client = useQueryClient();
  const feedback = useQuery(feedbackQuery(run.id));
  const { data: configs = [] } = useQuery(keysQuery);
  const [isAdding, setAdding] = useState(false);
  const [deleting, setDeleting] = useState<Feedback>();
  const refetch = () => Promise.all([TRACES, EXPERIMENTS].map((queryKey) => client.invalidateQueries({ queryKey })));
  const adding = useMutation({
    mutationFn: (draft: FeedbackDraft) =>
      api.post("/api/v1/feedback", { run_id: run.id, ...draft, feedback_source: { type: "app" } }),
    onSuccess: async () => {
      setAdding(false);
      toast("Feedback added");
      await refetch();
    },
  });
  if (feedback.error && !feedback.data)
    return <ErrorState error={feedback.error} retry={() => void feedback.refetch()} />;
  if (!feedback.data) return <SkeletonRows label="Loading feedback" rows={3} />;
  const keys = [
    ...new Set([...configs.map(({ feedback_key }) => feedback_key), ...feedback.data.map(({ key }) => key)]),
  ];
  return (
    <div className="grid gap-2 text-table">
      {feedback.data.length === 0 && !isAdding && (
        <EmptyState title="No feedback yet">Add a score or a comment here, or use an evaluator.</EmptyState>
      )}
      {feedback.data.length > 0 && (
        <ul aria-label="Feedback" className="divide-y divide-line border-line border-b">
          {feedback.data.map((each) => (
            <FeedbackRow key={each.id} feedback={each} onDelete={() => setDeleting(each)} />
          ))}
        </ul>
      )}
      {isAdding ? (
        <AnnotationForm
          feedback={undefined}
          keys={keys.map((name) => ({ name }))}
          error={adding.error?.message}
          isBusy={adding.isPending}
          onSave={(draft) => adding.mutate(draft)}
          onCancel={() => setAdding(false)}
        />
      ) : (
        <Button look="quiet" small className="justify-self-start" onClick={() => setAdding(true)}>
          <Plus size={13} aria-hidden /> Add feedback
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
          toast("Feedback deleted");
        }}
      >
        The statistics of the project are recomputed.
      </Confirm>
    </div>
  );
}

function FeedbackRow({ feedback, onDelete }: { feedback: Feedback; onDelete(): void }) {
  const { key, comment, created_at, feedback_source } = feedback;
  const evaluator = evaluatorRunOf(feedback);
  return (
    <li className="grid gap-0.5 py-1.5">
      <div className="flex min-h-6 flex-wrap items-center gap-x-3">
        <span className="font-medium">{key}</span>
        <span className="font-mono">{feedbackText(feedback, [])}</span>
        {feedback_source?.type && <Badge>{feedback_source.type}</Badge>}
        {evaluator && (
          <Link to="/runs/$id" params={{ id: evaluator }} className="rounded text-accent-text hover:underline">
            Evaluator trace
          </Link>
        )}
        <span className="ml-auto text-text-3">
          <RelativeTime time={created_at} />
        </span>
        <Button look="quiet" small square aria-label={`Delete ${key}`} onClick={onDelete}>
          <Trash2 size={13} />
        </Button>
      </div>
      {comment && <p className="whitespace-pre-wrap break-words text-text-2">{comment}</p>}
    </li>
  );
}

/** Returns the ID of the evaluator's run, which `evaluate()` stores in the feedback. */
function evaluatorRunOf({ feedback_source }: Feedback): string | undefined {
  const metadata = feedback_source?.metadata as { __run?: { run_id?: unknown } } | undefined;
  const run_id = metadata?.__run?.run_id;
  return typeof run_id === "string" ? run_id : undefined;
}
