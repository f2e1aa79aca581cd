import { newId } from "../platform/lib/ids.ts";
import type { FeedbackInput } from "./contract/feedback.ts";
import type { FeedbackRow } from "./storage/schema.ts";
import { textOf } from "./wire.ts";

/** Whose feedback it is that says nothing about its source: that of a program. */
const SOURCE = { type: "api", metadata: null };

/** The row of new feedback; a time that is not given is `now`, in milliseconds. */
export function newFeedbackRow(
  tenant_id: string,
  place: Pick<FeedbackRow, "experiment_no" | "ord" | "repetition">,
  given: FeedbackInput,
  now: number,
): FeedbackRow {
  const now_us = now * 1000;
  const { feedback_source } = given;
  return {
    feedback_id: given.id ?? newId(),
    tenant_id,
    ...place,
    key: given.key,
    score: given.score ?? null,
    value: textOf(given.value),
    comment: given.comment ?? null,
    correction: textOf(given.correction),
    source: JSON.stringify(feedback_source ? { metadata: null, ...feedback_source } : SOURCE),
    extra: textOf(given.extra),
    feedback_group_id: given.feedback_group_id ?? null,
    comparative_experiment_id: given.comparative_experiment_id ?? null,
    is_error: given.error === true ? 1 : 0,
    created_us: given.created_at ?? now_us,
    modified_us: given.modified_at ?? given.created_at ?? now_us,
  };
}
