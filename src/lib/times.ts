/** A moment as the wire writes it: ISO 8601 with `+00:00`, with microseconds only where there are some. */
export function isoOfMicroseconds(us: number): string {
  const ms = Math.floor(us / 1000);
  const rest = us - ms * 1000;
  const text = new Date(ms).toISOString().slice(0, -1);
  return `${text}${rest === 0 ? "" : String(rest).padStart(3, "0")}+00:00`;
}

/** The same for milliseconds since the epoch. */
export const isoOfMilliseconds = (ms: number): string => isoOfMicroseconds(ms * 1000);
