import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Plus, Trash2 } from "lucide-react";
import { useId, useState } from "react";
import type { AnnotationQueue } from "../../../../src/experiments/contract/annotation-queues/queues.ts";
import type { KeyConfig } from "../../../../src/experiments/contract/feedback/feedback-configs.ts";
import { api } from "../../api/request.ts";
import { Button } from "../../ui/button.tsx";
import { Checkbox, Field, Input, InputRow, TextArea } from "../../ui/form/field.tsx";
import { Select } from "../../ui/form/select.tsx";
import { FormDialog } from "../../ui/overlay/form-dialog.tsx";
import { toast } from "../../ui/overlay/toast.tsx";
import { EXPERIMENTS, keysQuery } from "../experiments/queries.ts";
import { QUEUES } from "./queries.ts";

type Kind = "number" | "pass" | "text";

/** Feedback config for each kind of feedback key. Numbers need no config. */
const CONFIGS: Record<Kind, KeyConfig["feedback_config"] | undefined> = {
  number: undefined,
  pass: {
    type: "categorical",
    min: null,
    max: null,
    categories: [
      { value: 1, label: "Pass" },
      { value: 0, label: "Fail" },
    ],
  },
  text: { type: "freeform", min: null, max: null, categories: null },
};

const KINDS: { value: Kind; label: string }[] = [
  { value: "number", label: "Number" },
  { value: "pass", label: "Pass or fail" },
  { value: "text", label: "Text" },
];

interface RubricRow {
  id: number;
  key: string;
  kind: Kind;
  description: string;
  is_required: boolean;
}

/** Creates a queue with a rubric, then opens the queue. */
export function CreateQueue({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: configs = [] } = useQuery(keysQuery);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [instructions, setInstructions] = useState("");
  const [reviewers, setReviewers] = useState("1");
  const [rubric, setRubric] = useState<RubricRow[]>([]);
  const isKnown = (key: string) => configs.some(({ feedback_key }) => feedback_key === key);
  const creating = useMutation({
    mutationFn: async () => {
      const rows = rubric.map((row) => ({ ...row, key: row.key.trim() }));
      // A retry after a failure is safe: creating the same config again changes nothing.
      for (const { key: feedback_key, kind } of rows)
        if (CONFIGS[kind] && !isKnown(feedback_key))
          await api.post("/api/v1/feedback-configs", { feedback_key, feedback_config: CONFIGS[kind] });
      return api.post<AnnotationQueue>("/api/v1/annotation-queues", {
        name: name.trim(),
        description: description.trim() || null,
        rubric_instructions: instructions.trim() || null,
        num_reviewers_per_item: Number(reviewers),
        rubric_items: rows.map(({ key, description: text, is_required }) => ({
          feedback_key: key,
          description: text.trim() || null,
          is_required,
        })),
      });
    },
    onSuccess: async ({ id }) => {
      toast("Queue created");
      onClose();
      await navigate({ to: "/queues/$id", params: { id } });
    },
    onSettled: () => Promise.all([QUEUES, EXPERIMENTS].map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
  const change = (id: number, changed: Partial<RubricRow>) =>
    setRubric(rubric.map((row) => (row.id === id ? { ...row, ...changed } : row)));
  const add = () =>
    setRubric([
      ...rubric,
      { id: (rubric.at(-1)?.id ?? 0) + 1, key: "", kind: "pass", description: "", is_required: true },
    ]);
  return (
    <FormDialog
      title="Create queue"
      description="Reviewers fill in the rubric for each run in the queue."
      action="Create queue"
      disabled={creating.isPending}
      error={creating.error}
      onSubmit={() => creating.mutate()}
      onClose={onClose}
    >
      <Field label="Name" isRequired>
        {(props) => (
          <Input {...props} required maxLength={1000} value={name} onChange={({ target }) => setName(target.value)} />
        )}
      </Field>
      <Field label="Description">
        {(props) => <Input {...props} value={description} onChange={({ target }) => setDescription(target.value)} />}
      </Field>
      <Field label="Instructions" hint="Markdown shown next to each run.">
        {(props) => (
          <TextArea {...props} rows={3} value={instructions} onChange={({ target }) => setInstructions(target.value)} />
        )}
      </Field>
      <Field label="Reviewers per item" hint="Number of users who must complete an item before it is archived.">
        {(props) => (
          <Input
            {...props}
            type="number"
            required
            min={1}
            max={100}
            value={reviewers}
            onChange={({ target }) => setReviewers(target.value)}
          />
        )}
      </Field>
      <fieldset className="grid gap-2">
        <legend className="mb-1 font-medium text-table">Rubric</legend>
        {rubric.map((row) => (
          <RubricFields
            key={row.id}
            row={row}
            keys={configs.map(({ feedback_key }) => feedback_key)}
            isKnown={isKnown(row.key.trim())}
            onChange={(changed) => change(row.id, changed)}
            onRemove={() => setRubric(rubric.filter(({ id }) => id !== row.id))}
          />
        ))}
        <Button look="quiet" small className="justify-self-start" onClick={add}>
          <Plus size={13} aria-hidden /> Add feedback key
        </Button>
      </fieldset>
    </FormDialog>
  );
}

function RubricFields({
  row: { key, kind, description, is_required },
  keys,
  isKnown,
  onChange,
  onRemove,
}: {
  row: RubricRow;
  keys: readonly string[];
  /** Whether the key already has a feedback config. If so, the queue uses that config. */
  isKnown: boolean;
  onChange(changed: Partial<RubricRow>): void;
  onRemove(): void;
}) {
  const list_id = useId();
  return (
    <div className="grid gap-2 rounded-lg border border-line p-2.5">
      <InputRow className="grid grid-cols-[minmax(0,1fr)_8rem_auto] gap-2">
        <Input
          aria-label="Feedback key"
          placeholder="Feedback key"
          required
          autoFocus
          maxLength={180}
          list={list_id}
          value={key}
          onChange={({ target }) => onChange({ key: target.value })}
        />
        {isKnown ? (
          <span className="self-center text-table text-text-3">Existing type</span>
        ) : (
          <Select aria-label="Type" value={kind} options={KINDS} onChange={(chosen) => onChange({ kind: chosen })} />
        )}
        <Button look="quiet" square aria-label={`Remove ${key || "feedback key"}`} onClick={onRemove}>
          <Trash2 size={14} />
        </Button>
      </InputRow>
      <Input
        aria-label="Question for the reviewer"
        placeholder="Question for the reviewer"
        value={description}
        onChange={({ target }) => onChange({ description: target.value })}
      />
      <Checkbox
        label="Required"
        checked={is_required}
        onChange={({ target }) => onChange({ is_required: target.checked })}
      />
      <datalist id={list_id}>
        {keys.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </div>
  );
}
