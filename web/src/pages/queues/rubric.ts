import type { RubricItem } from "../../../../src/experiments/contract/annotation-queues/queues.ts";
import type { Feedback } from "../../../../src/experiments/contract/feedback/feedback.ts";
import type { KeyConfig } from "../../../../src/experiments/contract/feedback/feedback-configs.ts";

/** Feedback key of the reviewer's free-text comment. Other annotation tools use the same key. */
export const NOTE = "note";

export const NOTE_ITEM: RubricItem = { feedback_key: NOTE, feedback_config: { feedback_config: { type: "freeform" } } };

export const configOf = ({ feedback_config }: RubricItem): Partial<KeyConfig["feedback_config"]> =>
  (feedback_config as Partial<KeyConfig> | null | undefined)?.feedback_config ?? {};

/** Converts the reviewer's earlier feedback to the text of a form field. */
export function textOf(item: RubricItem, feedback: Feedback | undefined): string {
  if (!feedback) return "";
  if (configOf(item).type === "freeform") return String(feedback.comment ?? feedback.value ?? "");
  return feedback.score === null ? "" : String(feedback.score);
}

/** Converts the text of a form field to feedback values. */
export function valuesOf(item: RubricItem, text: string): Pick<Feedback, "score" | "value" | "comment"> {
  const { type, categories } = configOf(item);
  if (type === "freeform") return { score: null, value: null, comment: text };
  const score = Number(text);
  return { score, value: categories?.find(({ value }) => value === score)?.label ?? null, comment: null };
}
