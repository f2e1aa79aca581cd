import { CircleX } from "lucide-react";
import type { ComparedCell, ComparedRow } from "../../../../../src/contract/app/comparison.ts";
import { duration } from "../../../ui/format.ts";
import { Skeleton } from "../../../ui/states.tsx";
import { Move } from "./move.tsx";
import type { Slot } from "./use-rows.ts";
import { type Key, scoreText, signOf } from "./view.ts";

/** Pixels of a score in a cell and of its key in the header: they stand below each other. */
export const SCORE_PX = 72;

/** What is shown of each experiment. */
export interface CellParts {
  keys: readonly Key[];
  latency: boolean;
  output: boolean;
  /** On one line, not on two. */
  dense: boolean;
  /** Each score with its key: on a card there is no header above it. */
  named: boolean;
}

/** What one experiment made of an example: its scores first, then the beginning of its output. */
export function RowCell({ slot: { row }, index, parts }: { slot: Slot; index: number; parts: CellParts }) {
  if (!row) return <Skeleton className="w-40" />;
  const cell = row.cells[index];
  if (!cell) return <span className="text-text-3">– not run</span>;
  const baseline = index === 0 ? undefined : (row.cells[0] ?? undefined);
  const text = parts.output && <Output cell={cell} />;
  return (
    <span className={parts.dense ? "flex min-w-0 items-center gap-2" : "block"}>
      <span className={parts.named ? "flex flex-wrap gap-x-3" : "flex shrink-0"}>
        {parts.keys.map((key) => (
          <span
            key={key.name}
            style={parts.named ? undefined : { width: SCORE_PX }}
            className="truncate pr-2 font-mono"
          >
            {parts.named && <span className="font-sans text-text-3">{key.name} </span>}
            <Score cell={cell} baseline={baseline} scoreKey={key} />
          </span>
        ))}
        {parts.latency && (
          <span style={{ width: SCORE_PX }} className="font-mono text-text-2">
            {duration(cell.latency_s * 1000)}
          </span>
        )}
      </span>
      {parts.dense ? (
        text && <span className="min-w-0 truncate">{text}</span>
      ) : (
        <span className="block truncate">{text}</span>
      )}
    </span>
  );
}

function Score({
  cell,
  baseline,
  scoreKey: key,
}: {
  cell: ComparedCell;
  baseline: ComparedCell | undefined;
  scoreKey: Key;
}) {
  const score = cell.scores[key.name];
  const label = cell.labels[key.name];
  if (score === undefined)
    return label === undefined ? <span className="text-text-3">–</span> : <span className="font-sans">{label}</span>;
  const before = baseline?.scores[key.name];
  const text = <span className="font-semibold">{label ?? scoreText(key, score)}</span>;
  if (before === undefined || before === score) return text;
  return (
    <span title={`${key.name}: ${scoreText(key, before)} in the baseline`}>
      {text} <Move sign={signOf(score - before, key.isLowerBetter)} />
    </span>
  );
}

const Output = ({ cell }: { cell: ComparedCell }) => (
  <>
    {cell.runs > 1 && <span className="text-text-3">{cell.runs}× </span>}
    {cell.error === null ? (
      <span className="text-text-2">{cell.outputs_preview ?? "–"}</span>
    ) : (
      <span className="text-error">
        <CircleX size={12} aria-label="Error" className="mr-1 inline" />
        {cell.error}
      </span>
    )}
  </>
);

/** What an example asks or expects, on as many lines as a row has. */
export const ExampleText = ({
  row,
  of,
}: {
  row: ComparedRow | undefined;
  of: "inputs_preview" | "expected_preview";
}) =>
  row ? (
    <span className="line-clamp-2 whitespace-normal break-words">{row[of] ?? "–"}</span>
  ) : (
    <Skeleton className="w-48" />
  );
