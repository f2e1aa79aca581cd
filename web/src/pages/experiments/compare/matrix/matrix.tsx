import { memo, type ReactNode } from "react";
import { classes, isNarrow, useMedia } from "../../../../ui/layout.tsx";
import type { Search } from "../search.ts";
import type { View } from "../view.ts";
import { densityOf, ExperimentHead, type HeadActions, isFlat } from "./experiment-head.tsx";
import { KeyMenu } from "./key-menu.tsx";
import { ErrorsCell, LatencyCell, ScoreCell } from "./matrix-cells.tsx";
import { StackedMatrix } from "./matrix-stacked.tsx";

export interface MatrixProps extends HeadActions {
  view: View;
  search: Search;
  focused: string;
  /** Widths of the texts and of each experiment in the table below, as JSON. Undefined if the table scrolls horizontally. */
  widths_json?: string;
  onChange(change: Partial<Search>): void;
}

/**
 * Matrix of the experiments' scores, latency and errors. A click on a count shows only the counted examples.
 *
 * Memoized, so that loading rows does not re-render the matrix.
 */
export const Matrix = memo(function Matrix(props: MatrixProps) {
  const narrow = useMedia(isNarrow);
  return narrow ? <StackedMatrix {...props} /> : <WideMatrix {...props} />;
});

function WideMatrix({ view, search, focused, widths_json, onChange, ...actions }: MatrixProps) {
  const [baseline] = view.shown;
  if (!baseline) return null;
  const density = densityOf(view.shown.length);
  const widths = alignedWidths(widths_json, view);
  return (
    <section
      aria-label="Scores by experiment"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
      className="relative max-h-[62vh] shrink-0 overflow-auto border-line border-b"
    >
      <table
        className={classes(
          "border-separate border-spacing-0",
          widths ? "w-full table-fixed [&_td]:pl-[11px] [&_th+th]:pl-[11px]" : "min-w-full",
          density === "narrow" ? "text-note" : "text-table",
        )}
      >
        {widths && (
          <colgroup>
            <col style={{ width: widths[0] }} />
            {view.shown.slice(0, -1).map(({ id }, index) => (
              <col key={id} style={{ width: widths[index + 1] }} />
            ))}
          </colgroup>
        )}
        <thead>
          <tr>
            <th
              scope="col"
              className={`${HEAD} left-0 z-20 min-w-28 !pl-(--table-start) text-left font-medium text-text-2`}
            >
              Score
            </th>
            {view.shown.map((session, index) => (
              <th key={session.id} scope="col" className={`${HEAD} z-10 border-line border-l text-left`}>
                <ExperimentHead
                  session={session}
                  isBaseline={index === 0}
                  isFocused={session.id === focused}
                  density={density}
                  {...actions}
                />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {view.keys.map((key) => (
            <tr key={key.name}>
              <RowHead
                title={key.name}
                note={key.isLowerBetter ? "lower is better" : undefined}
                menu={key.distribution && <KeyMenu scoreKey={key} />}
              />
              {view.shown.map((session, index) => (
                <td key={session.id} className={CELL}>
                  <ScoreCell
                    view={view}
                    session={session}
                    index={index}
                    scoreKey={key}
                    search={search}
                    onChange={(change) => {
                      actions.onFocus(session.id);
                      onChange(change);
                    }}
                  />
                </td>
              ))}
            </tr>
          ))}
          <tr>
            <RowHead title="latency" note="median" />
            {view.shown.map((session) => (
              <td key={session.id} className={CELL}>
                <LatencyCell session={session} baseline={baseline} />
              </td>
            ))}
          </tr>
          <tr>
            <RowHead title="errors" />
            {view.shown.map((session) => (
              <td key={session.id} className={CELL}>
                <ErrorsCell
                  session={session}
                  baseline={baseline}
                  isOnly={search.failed === session.id}
                  onChange={onChange}
                />
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </section>
  );
}

/** Widths that the cells of the baseline and of a candidate need. */
const BASELINE_PX = 120;
const CANDIDATE_PX = 250;
const FLAT_CANDIDATE_PX = { wide: 460, medium: 350, narrow: 250 };

/** Returns the widths of the table below if the cells of the matrix fit into its columns, so that both have the same columns. */
function alignedWidths(json: string | undefined, view: View): readonly number[] | undefined {
  const { shown } = view;
  const widths = json === undefined ? [] : (JSON.parse(json) as number[]);
  const candidate_px = isFlat(view) ? FLAT_CANDIDATE_PX[densityOf(shown.length)] : CANDIDATE_PX;
  const fits = widths.slice(1).every((width, index) => width >= (index === 0 ? BASELINE_PX : candidate_px));
  return widths.length === shown.length + 1 && fits ? widths : undefined;
}

const HEAD = "sticky top-0 border-line border-b bg-sunken px-2 py-1";
const CELL = "whitespace-nowrap border-line border-b border-l px-2 py-1 align-top";

const RowHead = ({ title, note, menu }: { title: string; note?: string; menu?: ReactNode }) => (
  <th
    scope="row"
    className="sticky left-0 z-[5] max-w-40 border-line border-b bg-bg py-1 pr-3 pl-(--table-start) text-left align-top font-medium"
  >
    <span className="flex items-center justify-between gap-1">
      <span className="truncate" title={title}>
        {title}
      </span>
      {menu}
    </span>
    {note && <span className="block font-normal text-text-3">{note}</span>}
  </th>
);
