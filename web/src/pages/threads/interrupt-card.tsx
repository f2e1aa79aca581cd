import { CirclePause } from "lucide-react";
import { type FormEvent, useMemo, useState } from "react";
import type { Interrupt } from "../../../../src/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Field, TextArea } from "../../ui/field.tsx";
import { JsonEditor } from "../../ui/json-editor.tsx";
import type { JsonSchema } from "../../ui/json-schema.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { SchemaForm } from "../../ui/schema-form.tsx";
import { type Choice, questionOf } from "./answers.ts";

/** JSON as it is, whatever the question offers. */
const RAW: Choice = { label: "Raw JSON", kind: "edit", draft: null, resume: (written) => written ?? null };

/**
 * What the thread waits for, with the ways to answer it.
 *
 * @param onAnswer with what the run is resumed with
 */
export function InterruptCard({
  interrupt,
  node,
  onAnswer,
}: {
  interrupt: Interrupt;
  /** Which one asks. */
  node: string | undefined;
  onAnswer(resume: unknown): Promise<unknown>;
}) {
  const { text, detail, choices, link } = useMemo(() => questionOf(interrupt), [interrupt]);
  const [chosen, setChosen] = useState<Choice>();
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const answer = async (resume: unknown) => {
    setState({ busy: true });
    await onAnswer(resume).catch((error: Error) => setState({ error: error.message }));
  };
  const schema = interrupt.response_schema as JsonSchema | undefined;
  const offered: Choice[] = schema ? [{ ...RAW, label: "Answer", kind: "respond", draft: {} }, RAW] : [...choices, RAW];
  return (
    <section
      aria-label="The agent asks"
      className="rounded-xl border border-interrupted bg-raised px-4 py-3 shadow-float"
    >
      <div className="mb-2 flex items-start gap-2">
        <CirclePause size={16} className="mt-0.5 shrink-0 text-interrupted" aria-hidden />
        <div className="min-w-0 flex-1">
          <h2 className="whitespace-pre-wrap break-words font-medium">{text ?? "The agent waits for an answer"}</h2>
          {node && <p className="text-table text-text-3">asked by {node}</p>}
        </div>
      </div>
      {isWorthShowing(detail) && (
        <div className="mb-3 max-h-48 overflow-y-auto">
          <JsonTree value={detail} open={2} />
        </div>
      )}
      {link && (
        <a href={link} target="_blank" rel="noreferrer" className="mb-3 block break-all text-accent-text underline">
          {link}
        </a>
      )}
      <div className="flex flex-wrap gap-2">
        {offered.map((choice, index) => (
          <Button
            key={choice.label}
            look={index === 0 ? "primary" : choice.kind === "reject" ? "danger" : "plain"}
            disabled={state.busy}
            aria-expanded={choice.draft === undefined ? undefined : chosen?.label === choice.label}
            onClick={() => {
              if (choice.draft === undefined) void answer(choice.resume(undefined));
              else setChosen(chosen?.label === choice.label ? undefined : choice);
            }}
          >
            {choice.label}
            {choice.draft !== undefined && " …"}
          </Button>
        ))}
      </div>
      {chosen && (
        <AnswerForm
          key={chosen.label}
          choice={chosen}
          schema={chosen === RAW ? undefined : schema}
          busy={state.busy === true}
          onAnswer={answer}
        />
      )}
      {state.error && (
        <p role="alert" className="mt-2 text-error text-table">
          {state.error}
        </p>
      )}
    </section>
  );
}

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

const isWorthShowing = (detail: unknown): boolean =>
  detail !== undefined && (typeof detail !== "object" || Object.keys(detail ?? {}).length > 0);

function AnswerForm({
  choice,
  schema,
  busy,
  onAnswer,
}: {
  choice: Choice;
  schema: JsonSchema | undefined;
  busy: boolean;
  onAnswer(resume: unknown): Promise<unknown>;
}) {
  const [written, setWritten] = useState(choice.draft);
  const fields = schema ?? (choice.label === RAW.label ? undefined : schemaOfDraft(choice.draft));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void onAnswer(choice.resume(written));
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-3">
      {fields ? (
        <SchemaForm schema={fields} value={written as Record<string, unknown>} onChange={setWritten} />
      ) : typeof choice.draft === "string" ? (
        <Field label={choice.kind === "reject" ? "Why (optional)" : "Your answer"}>
          {(props) => (
            <TextArea
              {...props}
              autoFocus
              rows={2}
              required={choice.kind === "respond"}
              value={written as string}
              onChange={({ target }) => setWritten(target.value)}
            />
          )}
        </Field>
      ) : (
        <JsonEditor autoFocus label="Your answer, as JSON" value={written} onChange={setWritten} />
      )}
      <Button type="submit" look="primary" disabled={busy} className="justify-self-start">
        Send: {choice.label.toLowerCase()}
      </Button>
    </form>
  );
}
