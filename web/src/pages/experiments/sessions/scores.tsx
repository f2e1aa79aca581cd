import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Feedback } from "../../../../../src/experiments/contract/feedback/feedback.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { DASH, number } from "../../../ui/format.ts";
import { distributionsQuery } from "../compare/queries.ts";
import { type Key, keysOf, scoreText } from "../compare/view.ts";
import { keysQuery } from "../queries.ts";

/** A run's feedback for one key: the first score or label, and the number of additional scores. */
export function Scores({ feedback, of, keys }: { feedback: readonly Feedback[]; of: string; keys: readonly Key[] }) {
  const found = feedback.filter(({ key }) => key === of);
  const [first] = found;
  if (!first) return <span className="text-text-3">{DASH}</span>;
  return (
    <span title={first.comment ?? undefined} className={isFailed(first) ? "text-error" : undefined}>
      {feedbackText(first, keys, true)}
      {found.length > 1 && <span className="text-text-3"> +{found.length - 1}</span>}
    </span>
  );
}

/** Whether the feedback is the error of an evaluator. The official clients mark these the same way. */
export const isFailed = ({ extra }: Feedback): boolean => extra?.error === true;

/**
 * Formats a feedback score as its label, as pass or fail, or as a number. If there is no score, formats the feedback value.
 *
 * @param isAligned whether numbers have the same number of decimals as the other scores of the key
 */
export function feedbackText(feedback: Feedback, keys: readonly Key[], isAligned = false): string {
  if (isFailed(feedback)) return "failed";
  const { key: name, score, value } = feedback;
  const key = keys.find((known) => known.name === name);
  if (score !== null) return key ? scoreText(key, score, isAligned ? key.decimals : undefined) : number(score);
  if (value === null || value === undefined) return DASH;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns the feedback keys of an experiment, for formatting scores as in the comparison. */
export function useScoreKeys(session: Session | undefined): readonly Key[] {
  const dataset_id = session?.reference_dataset_id ?? "";
  const query = distributionsQuery(dataset_id, session && dataset_id ? [session.id] : []);
  const { data: distributions } = useQuery(query);
  const { data: configs } = useQuery(keysQuery);
  return useMemo(
    () => (session ? keysOf([session], distributions ?? [], configs ?? []) : []),
    [session, distributions, configs],
  );
}
