import type { ReactNode } from "react";
import { DASH } from "./format.ts";
import { hueStyle } from "./hue-dot.tsx";

export interface TrendPoint {
  id: string;
  /** Name of the measured item, which gives the point its hue. */
  label: string;
  value: number;
}

const WIDTH = 148;
const HEIGHT = 32;
/** Padding of the drawing in pixels, so that points at the edges are not cut off. */
const EDGE = 4;
/** Maximum number of points. More points would overlap, so longer series show only their last points. */
const MAX_POINTS = 60;

/** A metric over time: name, newest value, change, and a line whose point at the right is the newest one that has a value. */
export function Trend({
  name,
  points,
  value,
  format,
  change,
}: {
  name: string;
  /** Points, oldest first. Must not be empty. */
  points: readonly TrendPoint[];
  /** Newest value; null if the newest item has none. */
  value: number | null;
  format(value: number): string;
  /** Change of the newest value. */
  change?: ReactNode;
}) {
  const drawn = points.slice(-MAX_POINTS);
  const last = drawn.at(-1) as TrendPoint;
  const places = placesOf(drawn);
  const label = drawn.map((point) => `${point.label}: ${format(point.value)}`).join(", ");
  return (
    <figure aria-label={name} className="grid shrink-0 gap-1 border-line border-r px-4 py-2 last:border-r-0">
      <figcaption className="flex items-baseline gap-2 text-table">
        <span className="max-w-36 truncate text-text-2" title={name}>
          {name}
        </span>
        <span className="ml-auto font-mono font-medium">{value === null ? DASH : format(value)}</span>
        {change}
      </figcaption>
      <svg width={WIDTH} height={HEIGHT} role="img" aria-label={label}>
        <polyline
          points={places.map(({ x, y }) => `${x},${y}`).join(" ")}
          className="fill-transparent stroke-text-3"
          strokeWidth={1.5}
        />
        {drawn.map((point, index) => {
          const { x, y } = places[index] as Place;
          return (
            <g key={point.id}>
              <title>{`${point.label}: ${format(point.value)}`}</title>
              {/* Larger than the point, so that the point is easy to hover. */}
              <rect x={x - 5} y={0} width={10} height={HEIGHT} className="fill-transparent" />
              <circle cx={x} cy={y} r={point === last ? 4 : 2.5} style={hueStyle(point.label)} className="fill-hue" />
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

interface Place {
  x: number;
  y: number;
}

function placesOf(points: readonly TrendPoint[]): Place[] {
  const values = points.map(({ value }) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const step = (WIDTH - 2 * EDGE) / Math.max(points.length - 1, 1);
  return points.map(({ value }, index) => ({
    x: points.length === 1 ? WIDTH / 2 : EDGE + index * step,
    y: high === low ? HEIGHT / 2 : EDGE + (1 - (value - low) / (high - low)) * (HEIGHT - 2 * EDGE),
  }));
}
