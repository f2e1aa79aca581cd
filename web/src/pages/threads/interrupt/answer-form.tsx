import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { Field, TextArea } from "../../../ui/form/field.tsx";
import { JsonEditor } from "../../../ui/form/json-editor.tsx";
import type { JsonSchema } from "../../../ui/form/json-schema.ts";
import { SchemaForm } from "../../../ui/form/schema-form.tsx";
import type { Choice } from "./interrupt-choices.ts";

/**
 * Edits the answer to an interrupt. The form replaces the choice buttons until the answer is submitted or cancelled.
 *
 * @param schema JSON Schema of the answer, if the interrupt specifies a schema
 * @param isRaw edits the answer as JSON instead of as a form
 */
export function AnswerForm({
  choice,
  schema,
  isRaw,
  busy,
  onAnswer,
  onCancel,
}: {
  choice: Choice;
  schema: JsonSchema | undefined;
  isRaw: boolean;
  busy: boolean;
  onAnswer(resume: unknown): Promise<unknown>;
  onCancel(): void;
}) {
  const [answer, setAnswer] = useState(choice.draft);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("input, textarea, button")?.focus(), []);
  const fields = isRaw ? undefined : (schema ?? schemaOfDraft(choice.draft));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onAnswer(choice.resume(answer));
  };
  const cancelOnEscape = (event: KeyboardEvent) => {
    // An open drop-down list handles Escape itself.
    if (event.key !== "Escape" || event.defaultPrevented || busy) return;
    event.preventDefault();
    onCancel();
  };
  return (
    <form ref={form} aria-label={choice.label} onSubmit={submit} onKeyDown={cancelOnEscape} className="grid gap-3">
      {fields ? (
        <SchemaForm schema={fields} value={answer as Record<string, unknown>} onChange={setAnswer} />
      ) : typeof choice.draft === "string" ? (
        <Field label={choice.kind === "reject" ? "Reason" : "Response"}>
          {(props) => (
            <TextArea
              {...props}
              rows={2}
              required={choice.kind === "respond"}
              value={answer as string}
              onChange={({ target }) => setAnswer(target.value)}
            />
          )}
        </Field>
      ) : (
        <JsonEditor label="Response (JSON)" value={answer} onChange={setAnswer} />
      )}
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look={choice.kind === "reject" ? "danger" : "primary"} disabled={busy}>
          {isRaw ? "Submit JSON" : SUBMIT_LABELS[choice.kind](choice.label)}
        </Button>
        <Button aria-keyshortcuts="Escape" disabled={busy} onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

const SUBMIT_LABELS: Record<Choice["kind"], (label: string) => string> = {
  approve: (label) => label,
  edit: () => "Approve with changes",
  respond: () => "Submit response",
  reject: (label) => label,
};

const SCHEMA_TYPES: Record<string, string> = { string: "string", number: "number", boolean: "boolean" };

/** Derives a schema from an object of scalar values. Returns undefined for other drafts, which are edited as text or JSON. */
function schemaOfDraft(draft: unknown): JsonSchema | undefined {
  if (typeof draft !== "object" || draft === null || Array.isArray(draft)) return undefined;
  const fields = Object.entries(draft);
  if (fields.length === 0 || !fields.every(([, value]) => (typeof value) in SCHEMA_TYPES)) return undefined;
  return {
    properties: Object.fromEntries(fields.map(([name, value]) => [name, { type: SCHEMA_TYPES[typeof value] }])),
  };
}
