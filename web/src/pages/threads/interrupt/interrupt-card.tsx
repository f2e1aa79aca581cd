import { CirclePause } from "lucide-react";
import { useMemo, useState } from "react";
import type { Interrupt } from "../../../../../src/agent-server/contract/records.ts";
import { useKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import type { JsonSchema } from "../../../ui/form/json-schema.ts";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { AnswerForm } from "./answer-form.tsx";
import { type Choice, questionOf } from "./interrupt-choices.ts";

/** Choice that is available for every interrupt. Resumes with any JSON value. */
const RAW: Choice = { label: "Raw JSON", kind: "edit", draft: null, resume: (answer) => answer ?? null };

/**
 * An open interrupt with the possible answers.
 *
 * @param onAnswer resumes the run with a value
 */
export function InterruptCard({
  interrupt,
  node,
  onAnswer,
  hasKeys = false,
}: {
  interrupt: Interrupt;
  /** Name of the node that raised the interrupt. */
  node: string | undefined;
  onAnswer(resume: unknown): Promise<unknown>;
  /** Whether `a` approves and `r` rejects. */
  hasKeys?: boolean;
}) {
  const { text, detail, choices, link } = useMemo(() => questionOf(interrupt), [interrupt]);
  // The choice whose answer is being edited. The other choices are then hidden, because "Approve" would submit the original value.
  const [chosen, setChosen] = useState<Choice>();
  const [cancelled, setCancelled] = useState<Choice>();
  const [state, setState] = useState<{ busy?: boolean; error?: string }>({});
  const answer = async (resume: unknown) => {
    setState({ busy: true });
    await onAnswer(resume).catch((error: Error) => setState({ error: error.message }));
  };
  const schema = (interrupt.response_schema ?? undefined) as JsonSchema | undefined;
  const offered: Choice[] = schema
    ? [{ ...RAW, label: "Respond", kind: "respond", draft: {} }, RAW]
    : [...choices, RAW];
  const choose = (choice: Choice) => {
    if (choice.draft === undefined) void answer(choice.resume(undefined));
    else setChosen(choice);
  };
  const keyOf = (kind: Choice["kind"]) => {
    const choice = hasKeys && !chosen && !state.busy ? offered.find((each) => each.kind === kind) : undefined;
    return choice && { does: choice.label, run: () => choose(choice) };
  };
  const [approve, reject] = [keyOf("approve"), keyOf("reject")];
  useKeys({ ...(approve && { a: approve }), ...(reject && { r: reject }) });
  return (
    <section
      aria-label="Needs your input"
      className="rounded-xl border border-interrupted bg-raised px-4 py-3 shadow-float"
    >
      <div className="mb-2 flex items-start gap-2">
        <CirclePause size={16} className="mt-0.5 shrink-0 text-interrupted" aria-hidden />
        <div className="min-w-0 flex-1">
          <h2 className="whitespace-pre-wrap break-words font-medium">{text ?? "The agent needs your input"}</h2>
          {node && <p className="text-table text-text-3">Interrupted in {node}</p>}
        </div>
      </div>
      {hasContent(detail) && (
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
            setCancelled(chosen);
          }}
        />
      ) : (
        <div className="flex flex-wrap gap-2">
          {offered.map((choice, index) => (
            <Button
              key={choice.label}
              autoFocus={choice.label === cancelled?.label}
              look={index === 0 ? "primary" : choice.kind === "reject" ? "danger" : "plain"}
              disabled={state.busy}
              onClick={() => choose(choice)}
            >
              {choice.label}
              {choice.draft !== undefined && "…"}
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

const hasContent = (detail: unknown): boolean =>
  detail !== undefined && (typeof detail !== "object" || Object.keys(detail ?? {}).length > 0);
