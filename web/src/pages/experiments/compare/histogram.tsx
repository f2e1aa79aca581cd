/** How scores are distributed: a bar for each range, the highest as high as it may be. */
export function Histogram({
  counts,
  label,
  width,
}: {
  counts: readonly number[];
  label: string;
  /** In pixels. */
  width: number;
}) {
  const most = Math.max(1, ...counts);
  return (
    <svg
      role="img"
      aria-label={label}
      width={width}
      height={16}
      viewBox="0 0 60 16"
      preserveAspectRatio="none"
      className="shrink-0 text-text-3"
    >
      <title>{label}</title>
      <line x1={0} x2={60} y1={15.5} y2={15.5} stroke="currentColor" strokeWidth={1} opacity={0.5} />
      {counts.map((count, index) => {
        // What is there is seen, however little it is.
        const height = count === 0 ? 0 : Math.max(1, (count / most) * 15);
        // biome-ignore lint/suspicious/noArrayIndexKey: a range is its place
        return <rect key={index} x={index * 6} y={15.5 - height} width={5} height={height} fill="currentColor" />;
      })}
    </svg>
  );
}
