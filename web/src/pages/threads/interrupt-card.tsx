import { CirclePause } from "lucide-react";
import { useMemo, useState } from "react";
import type { Interrupt } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import type { JsonSchema } from "../../ui/json-schema.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { AnswerForm } from "./answer-form.tsx";
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
  // While one answer is written no other can be given: an approval would send what was asked, not what was written.
  const [chosen, setChosen] = useState<Choice>();
  const [left, setLeft] = useState<Choice>();
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
      {chosen ? (
        <AnswerForm
          choice={chosen}
          schema={chosen === RAW ? undefined : schema}
          isRaw={chosen === RAW}
          busy={state.busy === true}
          onAnswer={answer}
          onCancel={() => {
            setChosen(undefined);
            setState({});
            setLeft(chosen);
          }}
        />
      ) : (
        <div className="flex flex-wrap gap-2">
          {offered.map((choice, index) => (
            <Button
              key={choice.label}
              autoFocus={choice.label === left?.label}
              look={index === 0 ? "primary" : choice.kind === "reject" ? "danger" : "plain"}
              disabled={state.busy}
              onClick={() => {
                if (choice.draft === undefined) void answer(choice.resume(undefined));
                else setChosen(choice);
              }}
            >
              {choice.label}
              {choice.draft !== undefined && " …"}
            </Button>
          ))}
        </div>
      )}
      {state.error && (
        <p role="alert" className="mt-2 text-error text-table">
          {state.error}
        </p>
      )}
    </section>
  );
}

const isWorthShowing = (detail: unknown): boolean =>
  detail !== undefined && (typeof detail !== "object" || Object.keys(detail ?? {}).length > 0);
