import { type PointerEvent, type ReactNode, useState } from "react";
import { count, DASH } from "../../ui/format.ts";

export interface Series {
  label: string;
  /** CSS class that sets `color`. */
  color: string;
  /** Whether to fill the area below the line. */
  filled?: boolean;
  values: readonly number[];
}

/** View box of the chart. The drawing is stretched to the available width. */
const WIDTH = 600;
const HEIGHT = 100;

/**
 * A chart of integer series with common points in time. The legend shows the values under the pointer, or the last values.
 *
 * @param times one label per point
 */
export function SeriesChart({
  title,
  note,
  times,
  series,
}: {
  title: string;
  note?: ReactNode;
  times: readonly string[];
  series: readonly Series[];
}) {
  const [at, setAt] = useState<number>();
  const last = times.length - 1;
  const shown = at !== undefined && at <= last ? at : last;
  const max = Math.max(1, ...series.flatMap(({ values }) => values));
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    setAt(Math.round(((event.clientX - left) / width) * last));
  };
  const summary = series
    .map(({ label, values }) => `${label} ${count(values[last])}, max ${count(Math.max(0, ...values))}`)
    .join("; ");
  return (
    <figure className="min-w-0 flex-1">
      <figcaption className="mb-1 flex flex-wrap items-baseline gap-x-4 text-table">
        <span className="font-medium">{title}</span>
        {series.map(({ label, color, values }) => (
          <span key={label} className="flex items-center gap-1.5 text-text-2">
            <span aria-hidden className={`size-2 rounded-full bg-current ${color}`} />
            {label} <span className="min-w-4 font-mono text-text">{count(values[shown])}</span>
          </span>
        ))}
        <span className="ml-auto font-mono text-text-3">{times[shown] ?? DASH}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${title}: ${summary}`}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="block h-20 w-full touch-pan-y border-line border-b max-sm:h-12"
        onPointerMove={point}
        onPointerLeave={() => setAt(undefined)}
      >
        {series.map((each) => (
          <Line key={each.label} {...each} max={max} />
        ))}
        {at !== undefined && (
          <line
            x1={(shown / last) * WIDTH}
            x2={(shown / last) * WIDTH}
            y2={HEIGHT}
            className="text-text-3"
            stroke="currentColor"
            vectorEffect="non-scaling-stroke"
          />
        )}
      </svg>
      <div className="mt-0.5 flex justify-between font-mono text-table text-text-3">
        <span>{times[0]}</span>
        <span>{note}</span>
        <span>max {count(max)}</span>
      </div>
    </figure>
  );
}

function Line({ values, color, filled, max }: Series & { max: number }) {
  const step = WIDTH / Math.max(1, values.length - 1);
  // Leaves room for the line width at the top.
  const points = values.map(
    (value, i) => `${(i * step).toFixed(1)},${(HEIGHT - (value / max) * (HEIGHT - 4)).toFixed(1)}`,
  );
  return (
    <g className={color}>
      {filled && (
        <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} fill="currentColor" opacity={0.16} />
      )}
      <polyline
        points={points.join(" ")}
        fill="none"
        stroke="currentColor"
        strokeWidth={1.5}
        vectorEffect="non-scaling-stroke"
      />
    </g>
  );
}
