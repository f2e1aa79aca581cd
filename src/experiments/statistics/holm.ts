/**
 * p-values adjusted for being many (Holm 1979): calling those up to 0.05 significant, the chance of a false one among
 * all is at most 0.05. A null is a test that was not made: it stays null and does not count. Equals R's `p.adjust(p,
 * method = "holm")`.
 *
 * @returns in the same order
 * @throws RangeError when a p-value is not within 0 to 1
 */
export function holm(pValues: readonly (number | null)[]): (number | null)[] {
  const ascending = pValues.flatMap((p, index) => (p === null ? [] : [{ p, index }])).sort((a, b) => a.p - b.p);
  const adjusted = pValues.map((): number | null => null);
  let largest = 0;
  for (const [rank, { p, index }] of ascending.entries()) {
    if (!(p >= 0 && p <= 1)) throw new RangeError(`${p} is not a p-value.`);
    largest = Math.min(1, Math.max(largest, p * (ascending.length - rank)));
    adjusted[index] = largest;
  }
  return adjusted;
}
