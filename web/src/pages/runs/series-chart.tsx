import { type KeyboardEvent, type MouseEvent, useState } from "react";
import { cost, count, DASH, duration, percent } from "../../ui/format.ts";
import { classes } from "../../ui/layout.tsx";

export interface Series {
  label: string;
  /** CSS class that sets `color`. */
  color: string;
  /** Whether to fill the area below the line. */
  filled?: boolean;
  /** Null values are gaps in the line. */
  values: readonly (number | null)[];
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Ends of a duration axis whose halves are round, too. From 10 days, the axis ends at the maximum. */
const DURATION_TOPS = [
  ...[2, 4, 10, 20, 40, 100, 200, 400, SECOND, 2 * SECOND, 4 * SECOND, 10 * SECOND, 20 * SECOND],
  ...[MINUTE, 2 * MINUTE, 4 * MINUTE, 10 * MINUTE, 20 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR],
  ...[DAY, 2 * DAY, 4 * DAY, 10 * DAY],
];

/** Returns 2, 4 or 10 times a power of ten, so that half of it is round, too. */
function roundTop(max: number): number {
  const power = 10 ** Math.floor(Math.log10(max));
  return ([1, 2, 4].find((factor) => max <= factor * power) ?? 10) * power;
}

const UNITS = {
  count: { format: count, topOf: (max: number) => Math.max(2, roundTop(max)) },
  ms: { format: duration, topOf: (max: number) => DURATION_TOPS.find((top) => max <= top) ?? max },
  share: { format: percent, topOf: roundTop },
  usd: { format: cost, topOf: roundTop },
};

/** View box of the chart. The drawing is stretched to the available width. */
const WIDTH = 600;
const HEIGHT = 100;

/**
 * A chart of series with common points in time. The legend shows the values under the pointer, or the last values.
 *
 * @param times one label per point
 * @param unit unit of the values: integers, milliseconds, USD, or fractions that are shown in percent
 * @param onOpen called with the index of the clicked point. The arrow keys also select a point, and Enter opens it.
 */
export function SeriesChart({
  title,
  times,
  series,
  unit = "count",
  onOpen,
}: {
  title: string;
  times: readonly string[];
  series: readonly Series[];
  unit?: keyof typeof UNITS;
  onOpen?: (index: number) => void;
}) {
  const [at, setAt] = useState<number>();
  const last = times.length - 1;
  const shown = at !== undefined && at <= last ? at : last;
  const { format, topOf } = UNITS[unit];
  const known = (values: Series["values"]) => values.filter((value) => value !== null);
  const max = Math.max(0, ...series.flatMap(({ values }) => known(values)));
  const top = max === 0 ? topOf(1) : topOf(max);
  const pointAt = ({ currentTarget, clientX }: MouseEvent) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.min(last, Math.max(0, Math.round(((clientX - left) / width) * last)));
  };
  const summary = series
    .map(({ label, values }) => `${label} ${format(values[last])}, max ${format(Math.max(0, ...known(values)))}`)
    .join("; ");
  const press = (event: KeyboardEvent) => {
    const to = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: last }[event.key];
    if (to !== undefined) setAt(Math.min(last, Math.max(0, to)));
    else if (event.key === "Enter") onOpen?.(shown);
    else return;
    event.preventDefault();
  };
  const hover = {
    onPointerMove: (event: MouseEvent) => setAt(pointAt(event)),
    onPointerLeave: () => setAt(undefined),
    onBlur: () => setAt(undefined),
  };
  const control = onOpen
    ? {
        role: "slider",
        tabIndex: 0,
        "aria-label": title,
        "aria-valuemin": 0,
        "aria-valuemax": last,
        "aria-valuenow": shown,
        "aria-valuetext": `${times[shown]}: ${series.map(({ label, values }) => `${label} ${format(values[shown])}`).join(", ")}`,
        onKeyDown: press,
        onClick: (event: MouseEvent) => onOpen(pointAt(event)),
      }
    : { role: "img", "aria-label": `${title}: ${summary}` };
  return (
    <figure className="min-w-0 flex-1">
      <figcaption className="mb-1 flex flex-wrap items-baseline gap-x-4 text-table">
        <span className="font-medium">{title}</span>
        {series.map(({ label, color, values }) => (
          <span key={label} className="flex items-center gap-1.5 text-text-2">
            <span aria-hidden className={`size-2 rounded-full bg-current ${color}`} />
            {label} <span className="min-w-4 font-mono text-text">{format(values[shown])}</span>
          </span>
        ))}
        <span className="ml-auto font-mono text-text-3">{times[shown] ?? DASH}</span>
      </figcaption>
      <div className="grid grid-cols-[3.25rem_minmax(0,1fr)] gap-x-2 font-mono text-table text-text-3">
        <div aria-hidden className="flex flex-col justify-between text-right leading-none">
          <span>{format(top)}</span>
          <span className={classes(!onOpen && "max-sm:hidden")}>{format(top / 2)}</span>
          <span>0</span>
        </div>
        <div
          {...hover}
          {...control}
          className={classes(
            "touch-pan-y border-line border-b",
            onOpen && "cursor-pointer rounded-sm outline-offset-2",
          )}
        >
          <svg
            aria-hidden
            viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
            preserveAspectRatio="none"
            className={classes("block w-full overflow-visible", onOpen ? "h-28" : "h-20 max-sm:h-12")}
          >
            {[0, HEIGHT / 2].map((y) => (
              <line key={y} x2={WIDTH} y1={y} y2={y} className="stroke-line" vectorEffect="non-scaling-stroke" />
            ))}
            {series.map((each) => (
              <Line key={each.label} {...each} top={top} />
            ))}
            {at !== undefined && (
              <line
                x1={(shown / last) * WIDTH}
                x2={(shown / last) * WIDTH}
                y2={HEIGHT}
                stroke="currentColor"
                vectorEffect="non-scaling-stroke"
              />
            )}
          </svg>
        </div>
        <div className="col-start-2 mt-0.5 flex justify-between whitespace-nowrap">
          <span>{times[0]}</span>
          <span className="max-sm:hidden">{times[Math.round(last / 2)]}</span>
          <span>{times[last]}</span>
        </div>
      </div>
    </figure>
  );
}

function Line({ values, color, filled, top }: Series & { top: number }) {
  const step = WIDTH / Math.max(1, values.length - 1);
  const parts: { x: number; y: number }[][] = [[]];
  for (const [i, value] of values.entries())
    if (value === null) parts.push([]);
    else parts.at(-1)?.push({ x: i * step, y: HEIGHT - (value / top) * HEIGHT });
  return (
    <g className={color}>
      {parts
        .filter((part) => part.length > 0)
        .map((part) => {
          const [first, end] = [part[0], part.at(-1)] as [{ x: number; y: number }, { x: number; y: number }];
          const line = part.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
          return (
            <g key={first.x}>
              {filled && (
                <polygon
                  points={`${first.x},${HEIGHT} ${line} ${end.x},${HEIGHT}`}
                  fill="currentColor"
                  opacity={0.16}
                />
              )}
              {/* A point without neighbors is a line without length: its round caps make it a dot. */}
              <polyline
                points={part.length === 1 ? `${line} ${line}` : line}
                fill="none"
                stroke="currentColor"
                strokeWidth={part.length === 1 ? 4 : 1.5}
                strokeLinecap="round"
                vectorEffect="non-scaling-stroke"
              />
            </g>
          );
        })}
    </g>
  );
}
