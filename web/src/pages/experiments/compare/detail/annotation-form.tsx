import { type FormEvent, useId, useState } from "react";
import type { Feedback } from "../../../../../../src/experiments/contract/feedback/feedback.ts";
import { Button } from "../../../../ui/button.tsx";
import { Field, Input } from "../../../../ui/form/field.tsx";
import type { Key } from "../view.ts";

export interface FeedbackDraft {
  key: string;
  score: number | null;
  value?: string | null;
  comment: string | null;
}

export function AnnotationForm({
  feedback,
  keys,
  error,
  isBusy,
  onSave,
  onCancel,
}: {
  /** The feedback to edit. Undefined to create feedback. */
  feedback: Feedback | undefined;
  keys: readonly Pick<Key, "name">[];
  error: string | undefined;
  isBusy: boolean;
  onSave(draft: FeedbackDraft): void;
  onCancel(): void;
}) {
  const list_id = useId();
  const [key, setKey] = useState(feedback?.key ?? "");
  const [score, setScore] = useState(feedback?.score?.toString() ?? "");
  const [label, setLabel] = useState(typeof feedback?.value === "string" ? feedback.value : "");
  const [comment, setComment] = useState(feedback?.comment ?? "");
  // The form edits only string values. Values of other types are kept unchanged.
  const hasLabel = typeof (feedback?.value ?? "") === "string";
  /** Whether there is something to save. A key alone says nothing about the run. */
  const isEmpty = score === "" && comment.trim() === "" && (hasLabel ? label.trim() === "" : feedback?.value == null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isEmpty) return;
    onSave({
      key,
      score: score === "" ? null : Number(score),
      ...(hasLabel && { value: label === "" ? null : label }),
      comment: comment === "" ? null : comment,
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-2 py-1">
      <div className="grid grid-cols-[1fr_6rem_8rem] gap-2 max-sm:grid-cols-1">
        <Field label="Key">
          {(props) => (
            <Input
              {...props}
              required
              autoFocus={!feedback}
              readOnly={feedback !== undefined}
              maxLength={180}
              list={list_id}
              value={key}
              onChange={({ target }) => setKey(target.value)}
            />
          )}
        </Field>
        <Field label="Score">
          {(props) => (
            <Input
              {...props}
              type="number"
              step="any"
              autoFocus={feedback !== undefined}
              value={score}
              onChange={({ target }) => setScore(target.value)}
            />
          )}
        </Field>
        {hasLabel && (
          <Field label="Label">
            {(props) => <Input {...props} value={label} onChange={({ target }) => setLabel(target.value)} />}
          </Field>
        )}
      </div>
      <Field label="Comment" error={error}>
        {(props) => <Input {...props} value={comment} onChange={({ target }) => setComment(target.value)} />}
      </Field>
      <datalist id={list_id}>
        {keys.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div className="flex gap-2">
        <Button
          small
          look="primary"
          type="submit"
          disabled={isBusy || isEmpty}
          title={isEmpty ? "Enter a score, a label or a comment" : undefined}
        >
          Save
        </Button>
        <Button small onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
