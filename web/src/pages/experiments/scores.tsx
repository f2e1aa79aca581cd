import type { Feedback } from "../../../../src/experiments/contract/feedback.ts";
import { DASH, number } from "../../ui/format.ts";
import { type Key, scoreText } from "./compare/view.ts";

/** What the feedback of one key says of a run: scores, else labels. More than one is told with the number of them. */
export function Scores({ feedback, of, keys }: { feedback: readonly Feedback[]; of: string; keys: readonly Key[] }) {
  const found = feedback.filter(({ key }) => key === of);
  const [first] = found;
  if (!first) return <span className="text-text-3">{DASH}</span>;
  return (
    <span title={first.comment ?? undefined}>
      {textOf(first, keys)}
      {found.length > 1 && <span className="text-text-3"> +{found.length - 1}</span>}
    </span>
  );
}

/** The score, as a word where its key has one for it, or the value where there is none. */
export function textOf({ key: name, score, value }: Feedback, keys: readonly Key[]): string {
  const key = keys.find((known) => known.name === name);
  if (score !== null) return key ? scoreText(key, score) : number(score);
  if (value === null || value === undefined) return DASH;
  return typeof value === "string" ? value : JSON.stringify(value);
}
