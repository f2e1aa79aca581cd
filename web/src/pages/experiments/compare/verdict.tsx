import type { PairComparison } from "../../../../../src/experiments/contract/comparison.ts";
import { count } from "../../../ui/format.ts";
import { classes } from "../../../ui/layout.tsx";
import { deltaText, pText } from "./difference-text.ts";
import { Legend } from "./legend.tsx";
import { changePatch } from "./order.ts";
import type { Search } from "./search.ts";
import { isSignificant, signOf, type View } from "./view.ts";

/** Number of significant differences that are shown as sentences. More do not fit into 1280 pixels. */
const MAX_FINDINGS = 2;

interface Finding {
  difference: PairComparison;
  name: string;
  sign: number;
}

/** Returns the significant differences, worse before better, then by p-value and size. */
export function findingsOf({ shown, keys, differenceOf }: View): Finding[] {
  const found = shown.slice(1).flatMap(({ id, name }) =>
    keys.flatMap((key): Finding[] => {
      const difference = differenceOf(id, key.name);
      if (!difference || difference.mean_delta === null || !isSignificant(difference)) return [];
      return [{ difference, name, sign: signOf(difference.mean_delta, difference.is_lower_score_better) }];
    }),
  );
  const p = ({ difference }: Finding) => difference.p_adjusted ?? 1;
  const size = ({ difference }: Finding) => Math.abs(difference.mean_delta ?? 0);
  return found.sort((a, b) => a.sign - b.sign || p(a) - p(b) || size(b) - size(a));
}

/** Summarizes the significant differences. A click on a difference shows its examples. */
export function Verdict({
  view,
  search,
  onFocus,
  onChange,
}: {
  view: View;
  search: Search;
  onFocus(id: string): void;
  onChange(patch: Partial<Search>): void;
}) {
  const isSingle = view.shown.length < 2;
  const findings = view.hasSignificance ? findingsOf(view) : [];
  const more = findings.length - MAX_FINDINGS;
  const show = ({ difference: { session_id, key }, sign }: Finding) => {
    onFocus(session_id);
    onChange(changePatch(view, search, sign < 0 ? "worse" : "better", key, session_id));
  };
  return (
    <section
      aria-label="Differences from the baseline"
      className="flex shrink-0 items-center gap-4 border-line border-b px-6 py-1 text-table max-sm:px-4"
    >
      <div className="flex min-h-7 min-w-0 flex-1 items-center gap-x-5 max-sm:flex-col max-sm:items-stretch">
        {findings.slice(0, MAX_FINDINGS).map((finding) => (
          <Sentence
            key={`${finding.difference.session_id} ${finding.difference.key}`}
            {...finding}
            onShow={() => show(finding)}
          />
        ))}
        {more > 0 && <span className="shrink-0 text-text-2">{count(more)} more below</span>}
        {findings.length === 0 && (
          <span className="text-text-2">
            {isSingle
              ? "Add another experiment to compare with the baseline."
              : !view.hasPairs
                ? "No example has a score in both the baseline and another experiment."
                : view.hasSignificance
                  ? "No statistically significant differences from the baseline."
                  : "Computing statistical significance…"}
          </span>
        )}
      </div>
      <Legend />
    </section>
  );
}

function Sentence({ difference, name, sign, onShow }: Finding & { onShow(): void }) {
  const word = sign < 0 ? "worse" : "better";
  return (
    <button
      type="button"
      title={`${name}: show ${word} examples, ${sign < 0 ? "worst" : "best"} first`}
      onClick={onShow}
      className={classes(
        "-mx-1 flex min-w-0 gap-1 rounded px-1 text-left hover:bg-hover max-sm:block max-sm:py-0.5",
        sign < 0 ? "text-worse" : "text-better",
      )}
    >
      <span aria-hidden>{sign < 0 ? "▼" : "▲"} </span>
      <span className="truncate font-medium">{name} </span>
      <span className="shrink-0">
        is {word} on {difference.key}: {deltaText(difference, true, false)},{" "}
        <span className="whitespace-nowrap">{pText(difference.p_adjusted as number)}</span>
      </span>
    </button>
  );
}
