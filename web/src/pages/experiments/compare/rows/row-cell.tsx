import { CircleX } from "lucide-react";
import type { ComparedCell, ComparedRow } from "../../../../../../src/experiments/contract/app-comparison.ts";
import { DASH, duration } from "../../../../ui/format.ts";
import { classes } from "../../../../ui/layout.tsx";
import { changeText, type Key, scoreText, signOf } from "../view.ts";
import type { Slot } from "./slots.ts";

/** Width of a score in a cell and of its key in the header, so that both are aligned. */
export const SCORE_PX = 72;

/** Width of a score with its difference, such as `0.250 ▼ −0.57`. Pass and fail scores need only an arrow. */
const CHANGED_SCORE_PX = 124;

/** Width of a key's scores in an experiment column. @param index 0 for the baseline */
export function scorePx(key: Key, index: number, isRoomy: boolean): number {
  const score_px = index === 0 || key.isBinary || !key.distribution ? SCORE_PX : CHANGED_SCORE_PX;
  return isRoomy ? Math.max(score_px, Math.min(MAX_NAME_PX, 34 + 7 * key.name.length)) : score_px;
}

/** Width up to which a score column grows for its name on wide screens. */
const MAX_NAME_PX = 150;

export interface CellParts {
  keys: readonly Key[];
  latency: boolean;
  output: boolean;
  /** Whether there is space for the complete names of the scores. */
  isRoomy: boolean;
  /** Whether a row has one line instead of two. */
  dense: boolean;
  /** Whether each score is colored by its place between the worst and the best score of its key. */
  heat: boolean;
  /** Whether to show the key of each score. Required on cards, which have no header. */
  named: boolean;
}

/** An experiment's run on an example: scores, then an output preview. */
export function RowCell({ slot: { row }, index, parts }: { slot: Slot; index: number; parts: CellParts }) {
  if (!row) return <Placeholder className="w-40" />;
  const cell = row.cells[index];
  if (!cell) return <span className="text-text-3">Not run</span>;
  const baseline = index === 0 ? undefined : (row.cells[0] ?? undefined);
  const scores = (
    <span className={parts.named ? "flex flex-wrap gap-x-3" : "flex shrink-0"}>
      {parts.keys.map((key) => (
        <Score
          key={key.name}
          cell={cell}
          baseline={baseline}
          scoreKey={key}
          width={parts.named ? undefined : scorePx(key, index, parts.isRoomy)}
          heat={parts.heat}
        />
      ))}
      {parts.latency && (
        <span style={{ width: SCORE_PX }} className="font-mono text-text-2">
          {cell.latency_s === null ? "pending" : duration(cell.latency_s * 1000)}
        </span>
      )}
    </span>
  );
  if (!parts.dense)
    return (
      <>
        {scores}
        {parts.output && <Output cell={cell} className="block truncate" />}
      </>
    );
  return (
    <span className="flex min-w-0 items-center gap-2">
      {scores}
      {parts.output && <Output cell={cell} className="min-w-0 truncate" />}
    </span>
  );
}

/** Renders as few elements as possible, because a screen shows hundreds of scores, and scrolling adds 20 per frame. */
function Score({
  cell,
  baseline,
  scoreKey: key,
  width,
  heat,
}: {
  cell: ComparedCell;
  baseline: ComparedCell | undefined;
  scoreKey: Key;
  /** Width in pixels. Undefined on a card, where each score has its key beside it. */
  width: number | undefined;
  heat: boolean;
}) {
  const score = cell.scores[key.name];
  const label = cell.labels[key.name];
  const before = baseline?.scores[key.name];
  const isChanged = score !== undefined && before !== undefined && before !== score;
  return (
    <span
      style={{ width, background: heat && score !== undefined ? heatOf(key, score) : undefined }}
      className={classes(
        heat ? "truncate rounded-sm px-1" : "truncate pr-2",
        score === undefined ? (label === undefined ? "font-mono text-text-3" : "") : "font-mono font-semibold",
      )}
      title={isChanged ? `${key.name}: ${scoreText(key, before)} in the baseline` : undefined}
    >
      {width === undefined && <span className="font-normal font-sans text-text-3">{key.name} </span>}
      {label ?? (score === undefined ? DASH : scoreText(key, score, key.decimals))}
      {isChanged && (
        <Changed sign={signOf(score - before, key.isLowerBetter)} by={changeText(key, score, before)} heat={heat} />
      )}
    </span>
  );
}

/** Share of the color of the best and of the worst score in the background. */
const MAX_HEAT_PERCENT = 32;

/** The background of a score: from the color for worse through none in the middle to that for better. Undefined without a range. */
function heatOf({ distribution, isLowerBetter }: Key, score: number): string | undefined {
  if (!distribution || distribution.high <= distribution.low) return undefined;
  const place = (2 * (score - distribution.low)) / (distribution.high - distribution.low) - 1;
  const quality = isLowerBetter ? -place : place;
  const percent = Math.round(Math.abs(quality) * MAX_HEAT_PERCENT);
  return `color-mix(in srgb, var(${quality > 0 ? "--better" : "--worse"}) ${percent}%, transparent)`;
}

/** Like {@link ChangeMark}, but renders a single element, and without color where the background has one, for the contrast. */
const Changed = ({ sign, by, heat }: { sign: number; by: string; heat: boolean }) => (
  <span
    role="img"
    aria-label={`${sign > 0 ? "better" : "worse"} ${by}`.trim()}
    className={classes("font-normal text-note", heat ? "text-text" : sign > 0 ? "text-better" : "text-worse")}
  >
    {sign > 0 ? " ▲ " : " ▼ "}
    {by}
  </span>
);

const Output = ({
  cell: { runs, error, outputs_preview, is_earlier_version },
  className,
}: {
  cell: ComparedCell;
  className: string;
}) => (
  <span className={classes(className, error === null ? "text-text-2" : "text-error")}>
    {is_earlier_version && (
      <span
        className="text-text-3"
        title="Evaluated with an earlier version of the example: the expected output may differ"
      >
        Earlier version ·{" "}
      </span>
    )}
    {runs > 1 && <span className="text-text-3">{runs}× </span>}
    {error !== null && <CircleX size={12} aria-label="Error" className="mr-1 inline" />}
    {error ?? outputs_preview ?? DASH}
  </span>
);

/**
 * A placeholder without animation: a screen shows about a hundred placeholders, and each animated element would become a compositor layer.
 */
const Placeholder = ({ className }: { className: string }) => (
  <span aria-hidden className={classes("block h-3.5 rounded bg-line", className)} />
);

export const ExampleText = ({
  row,
  of,
  dense,
  isNumbered,
}: {
  row: ComparedRow | undefined;
  of: "inputs_preview" | "expected_preview";
  /** Whether the row has one line instead of two. */
  dense: boolean;
  /** Whether to show the example's number. Required on cards, which have no number column. */
  isNumbered?: boolean;
}) =>
  row ? (
    <span className={dense ? "block truncate" : "line-clamp-2 whitespace-normal [overflow-wrap:anywhere]"}>
      {isNumbered && <span className="font-mono font-normal text-text-3">#{row.number} </span>}
      {row[of] ?? DASH}
    </span>
  ) : (
    <Placeholder className="w-48" />
  );
