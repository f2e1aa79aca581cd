import { CircleQuestionMark } from "lucide-react";
import type { ReactNode } from "react";
import { KeyCap } from "../../../frame/key-list.tsx";
import { activeKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import { Popover } from "../../../ui/overlay/popover.tsx";

const SYMBOLS: readonly (readonly [sign: ReactNode, meaning: ReactNode])[] = [
  ["0.414", "Mean score"],
  [
    <span key="sign">
      <span className="text-better">▲ +0.10</span> <span className="text-worse">▼ −0.38</span>
    </span>,
    "Better or worse than the baseline: mean difference over the examples that have a score in both experiments (not the difference of the two means). Grey: not significant",
  ],
  ["[0.03, 0.17]", "95 % confidence interval of the difference"],
  ["p 0.02", "p-value of the difference, corrected for multiple comparisons across all scores and experiments (Holm)"],
  ["n.s.", "Not significant: p is 0.05 or more, or the interval contains 0"],
  [
    "n 192 of 200",
    "192 examples have a score in both experiments and are compared. 200 examples have a score in at least one of the two experiments",
  ],
  ["34 better", "Number of examples that scored better than in the baseline. Click to show them, largest change first"],
  [<Bars key="bars" />, "Distribution of the scores, from lowest to highest"],
  [
    <span key="blue" className="text-accent-text">
      blue name
    </span>,
    "Selected experiment. New filters and the keyboard shortcuts b and x apply to this experiment",
  ],
];

/** Explains the page's symbols and keyboard shortcuts. */
export const Legend = () => (
  <Popover
    label="Legend"
    trigger={
      <Button look="quiet" small square aria-label="Legend" title="Legend">
        <CircleQuestionMark size={16} />
      </Button>
    }
  >
    <LegendContent />
  </Popover>
);

const LIST = "grid grid-cols-[auto_1fr] gap-x-3 gap-y-1";

function LegendContent() {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <div tabIndex={0} className="max-h-[82vh] w-90 max-w-full overflow-y-auto text-note">
      <dl className={LIST}>
        {SYMBOLS.map(([sign, meaning], index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list is constant
          <div key={index} className="contents">
            <dt className="whitespace-nowrap font-mono">{sign}</dt>
            <dd className="text-text-2">{meaning}</dd>
          </div>
        ))}
      </dl>
      <dl className={`${LIST} mt-2.5 border-line border-t pt-2.5`}>
        {Object.entries(activeKeys()).map(([key, { does }]) => (
          <div key={key} className="contents">
            <dt>
              <KeyCap name={key} />
            </dt>
            <dd className="text-text-2">{does}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Bars() {
  return (
    <svg width={36} height={14} aria-hidden className="fill-text-3">
      {[2, 5, 11, 14, 8, 3].map((height, at) => (
        <rect key={height} x={at * 6} y={14 - height} width={5} height={height} />
      ))}
    </svg>
  );
}
