import type { Feedback } from "../../../../src/contract/experiments/feedback.ts";
import { DASH, number } from "../../ui/format.ts";

/** What the feedback of one key says of a run: scores, else labels. More than one is told with the number of them. */
export function Scores({ feedback, of }: { feedback: readonly Feedback[]; of: string }) {
  const found = feedback.filter(({ key }) => key === of);
  const [first] = found;
  if (!first) return <span className="text-text-3">{DASH}</span>;
  return (
    <span title={first.comment ?? undefined}>
      {textOf(first)}
      {found.length > 1 && <span className="text-text-3"> +{found.length - 1}</span>}
    </span>
  );
}

/** The score, or the value where there is none. */
export function textOf({ score, value }: Feedback): string {
  if (score !== null) return number(score);
  if (value === null || value === undefined) return DASH;
  return typeof value === "string" ? value : JSON.stringify(value);
}
