/** The places that are wanted, in the order that they have. */
export function kept(places: number[], wanted: Iterable<number>): number[] {
  const set = new Set(wanted);
  return places.filter((ord) => set.has(ord));
}

/** The places by what `valueAt` says of each; those without a value (NaN) come last, whichever way the others go. */
export function sortedBy(places: number[], valueAt: (ord: number) => number, descending: boolean): number[] {
  const values = new Map(places.map((ord) => [ord, valueAt(ord)]));
  const at = (ord: number) => values.get(ord) as number;
  const isKnown = (ord: number) => !Number.isNaN(at(ord));
  const sign = descending ? -1 : 1;
  const known = places.filter(isKnown).sort((a, b) => sign * (at(a) - at(b)) || a - b);
  return [...known, ...places.filter((ord) => !isKnown(ord)).sort((a, b) => a - b)];
}
