import { Progress as Radix } from "radix-ui";
import { Button } from "./button.tsx";
import { count } from "./format.ts";

export function Progress({
  label,
  done,
  total,
  format = count,
  onCancel,
}: {
  label: string;
  done: number;
  total: number;
  /** Formats the counts, for example `bytes` of format.ts for uploads. */
  format?: (value: number) => string;
  onCancel?: () => void;
}) {
  const share = total > 0 ? Math.min(done / total, 1) : 0;
  return (
    <div className="grid gap-1.5">
      <div className="flex items-center gap-3 text-table">
        <span className="flex-1 truncate">{label}</span>
        <span className="font-mono text-text-2">
          {format(done)} of {format(total)}
        </span>
        {onCancel && (
          <Button small look="quiet" onClick={onCancel}>
            Cancel
          </Button>
        )}
      </div>
      <Radix.Root aria-label={label} value={share * 100} className="h-1.5 overflow-hidden rounded-full bg-line">
        <Radix.Indicator className="h-full rounded-full bg-accent" style={{ width: `${share * 100}%` }} />
      </Radix.Root>
    </div>
  );
}
