import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { QueueOverview } from "../../../../src/experiments/contract/annotation-queues/app-queues.ts";
import type { QueueRun } from "../../../../src/experiments/contract/annotation-queues/items.ts";
import type { RubricItem } from "../../../../src/experiments/contract/annotation-queues/queues.ts";
import type { Feedback } from "../../../../src/experiments/contract/feedback/feedback.ts";
import { api } from "../../api/request.ts";
import { sessionQuery } from "../../api/session.ts";
import { Field, Input, RadioGroup, submits, TextArea } from "../../ui/form/field.tsx";
import { number } from "../../ui/format.ts";
import { DetailSection } from "../../ui/layout.tsx";
import { Markdown } from "../../ui/markdown/markdown.tsx";
import { ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { feedbackQuery } from "../traces/queries.ts";
import { FeedbackTab } from "../traces/run/feedback-tab.tsx";
import { configOf, NOTE_ITEM, textOf, valuesOf } from "./rubric.ts";

export type SaveFeedback = () => Promise<unknown>;

interface FormProps {
  /** ID of the form element, for the submit button outside the form. */
  id: string;
  queue: QueueOverview;
  item: QueueRun;
  onSubmit(save: SaveFeedback): void;
}

/** The instructions and the form of a queue, with the feedback that the user has given before. */
export function RubricForm(props: FormProps) {
  const { queue, item } = props;
  const { data: session } = useQuery(sessionQuery);
  const { data: feedback, error, refetch } = useQuery(feedbackQuery(item.id));
  if (error && !feedback) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!feedback || !session) return <SkeletonRows label="Loading feedback" rows={3} />;
  const own = feedback.filter(({ feedback_source }) => feedback_source?.user_id === session.user_id);
  const hasRubric = (queue.rubric_items?.length ?? 0) > 0;
  return (
    <div className="grid grid-cols-1 gap-5">
      {queue.rubric_instructions && (
        <DetailSection title="Instructions">
          <Markdown text={queue.rubric_instructions} />
        </DetailSection>
      )}
      <Fields {...props} user_id={session.user_id} own={new Map(own.toReversed().map((each) => [each.key, each]))} />
      {(!hasRubric || feedback.length > own.length) && (
        <DetailSection title="Feedback on the run">
          <FeedbackTab run={item} />
        </DetailSection>
      )}
    </div>
  );
}

function Fields({
  id,
  queue,
  item,
  user_id,
  own,
  onSubmit,
}: FormProps & { user_id: string; own: ReadonlyMap<string, Feedback> }) {
  const items = [
    ...new Map([...(queue.rubric_items ?? []), NOTE_ITEM].map((each) => [each.feedback_key, each])).values(),
  ];
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(
    () => new Map(items.map((each) => [each.feedback_key, textOf(each, own.get(each.feedback_key))])),
  );
  const textFor = ({ feedback_key }: RubricItem) => texts.get(feedback_key) ?? "";
  const save = (each: RubricItem): Promise<unknown> | undefined => {
    const text = textFor(each).trim();
    const before = own.get(each.feedback_key);
    if (text === textOf(each, before)) return;
    if (before) {
      const path = `/api/v1/feedback/${before.id}`;
      return text === "" ? api.delete(path) : api.patch(path, valuesOf(each, text));
    }
    const feedback_source = { type: "app", user_id };
    return api.post("/api/v1/feedback", {
      run_id: item.id,
      key: each.feedback_key,
      ...valuesOf(each, text),
      feedback_source,
    });
  };
  return (
    <form
      id={id}
      onSubmit={submits(() => onSubmit(() => Promise.all(items.map(save))))}
      className="grid grid-cols-1 gap-4 [overflow-wrap:anywhere]"
    >
      {items.map((each) => (
        <RubricField
          key={each.feedback_key}
          item={each}
          label={each === NOTE_ITEM ? "Note" : undefined}
          text={textFor(each)}
          onChange={(text) => setTexts(new Map(texts).set(each.feedback_key, text))}
        />
      ))}
    </form>
  );
}

/** Form field for a feedback key: radio buttons for categories, a text area or a number input. */
function RubricField({
  item,
  label = item.feedback_key,
  text,
  onChange,
}: {
  item: RubricItem;
  label?: string;
  text: string;
  onChange(text: string): void;
}) {
  const { type, min, max, categories } = configOf(item);
  const required = item.is_required === true;
  const descriptions: Record<string, string> = { ...item.value_descriptions, ...item.score_descriptions };
  if (type === "categorical" && categories)
    return (
      <RadioGroup
        legend={label}
        hint={item.description ?? undefined}
        required={required}
        value={text}
        options={categories.map(({ value, label: name }) => ({
          value: String(value),
          label: name ?? number(value),
          hint: descriptions[String(value)] ?? descriptions[name ?? ""],
        }))}
        onChange={onChange}
      />
    );
  const hints = [item.description, ...Object.entries(descriptions).map(([value, meaning]) => `${value}: ${meaning}`)];
  const hint = hints.filter(Boolean).join(" · ") || undefined;
  return (
    <Field label={label} hint={hint} isRequired={required}>
      {(props) =>
        type === "freeform" ? (
          <TextArea
            {...props}
            required={required}
            rows={2}
            value={text}
            onChange={({ target }) => onChange(target.value)}
          />
        ) : (
          <Input
            {...props}
            type="number"
            step="any"
            required={required}
            min={min ?? undefined}
            max={max ?? undefined}
            placeholder={[min, max].some((bound) => bound != null) ? `${number(min)} to ${number(max)}` : undefined}
            value={text}
            onChange={({ target }) => onChange(target.value)}
          />
        )
      }
    </Field>
  );
}
