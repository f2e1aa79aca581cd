import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Field, TextArea } from "../../ui/field.tsx";
import { JsonEditor } from "../../ui/json-editor.tsx";
import type { JsonSchema } from "../../ui/json-schema.ts";
import { SchemaForm } from "../../ui/schema-form.tsx";
import type { Choice } from "./answers.ts";

/**
 * Where the answer to an interrupt is written. It stands where the choices stood, until it is sent or left.
 *
 * @param schema of the answer, where the question has one
 * @param isRaw whatever the draft is, it is written as JSON
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
  const [written, setWritten] = useState(choice.draft);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("input, textarea, button")?.focus(), []);
  const fields = isRaw ? undefined : (schema ?? schemaOfDraft(choice.draft));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onAnswer(choice.resume(written));
  };
  const leaveOnEscape = (event: KeyboardEvent) => {
    // A list that is open takes the key for itself.
    if (event.key !== "Escape" || event.defaultPrevented || busy) return;
    event.preventDefault();
    onCancel();
  };
  return (
    <form ref={form} aria-label={choice.label} onSubmit={submit} onKeyDown={leaveOnEscape} className="grid gap-3">
      {fields ? (
        <SchemaForm schema={fields} value={written as Record<string, unknown>} onChange={setWritten} />
      ) : typeof choice.draft === "string" ? (
        <Field label={choice.kind === "reject" ? "Why (optional)" : "Your answer"}>
          {(props) => (
            <TextArea
              {...props}
              rows={2}
              required={choice.kind === "respond"}
              value={written as string}
              onChange={({ target }) => setWritten(target.value)}
            />
          )}
        </Field>
      ) : (
        <JsonEditor label="Your answer, as JSON" value={written} onChange={setWritten} />
      )}
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look={choice.kind === "reject" ? "danger" : "primary"} disabled={busy}>
          {isRaw ? "Send this JSON" : SENDS[choice.kind](choice.label)}
        </Button>
        <Button aria-keyshortcuts="Escape" disabled={busy} onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}

/** What is done with what was written, by the kind of the choice. */
const SENDS: Record<Choice["kind"], (label: string) => string> = {
  approve: (label) => label,
  edit: () => "Approve with changes",
  respond: () => "Send the answer",
  reject: (label) => label,
};

const TYPES: Record<string, string> = { string: "string", number: "number", boolean: "boolean" };

/** A form for an object of plain values; undefined for anything else, which is edited as JSON. */
function schemaOfDraft(draft: unknown): JsonSchema | undefined {
  if (typeof draft !== "object" || draft === null || Array.isArray(draft)) return undefined;
  const fields = Object.entries(draft);
  if (fields.length === 0 || !fields.every(([, value]) => (typeof value) in TYPES)) return undefined;
  return {
    properties: Object.fromEntries(fields.map(([name, value]) => [name, { type: TYPES[typeof value] }])),
    required: fields.map(([name]) => name),
  };
}
