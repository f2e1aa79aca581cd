import { CircleAlert, RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { CodeBlock } from "./code-block.tsx";
import { classes } from "./layout.tsx";

/** Placeholder of an empty page or list that describes the next step and may show a command to copy. */
export function EmptyState({
  title,
  children,
  command,
  action,
}: {
  title: string;
  children?: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  return (
    <div className="mx-auto grid w-full max-w-xl grid-cols-1 justify-items-center gap-3 px-4 py-12 text-center">
      <h2 className="font-semibold text-body">{title}</h2>
      {children && <div className="text-body text-text-2">{children}</div>}
      {command && (
        <div className="w-full text-left">
          <CodeBlock code={command} />
        </div>
      )}
      {action}
    </div>
  );
}

/** Whether a repeated request would be rejected again, because the server could not read it. */
const isPermanent = (error: Error): boolean => "status" in error && error.status === 422;

export function ErrorState({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div
      role="alert"
      className="mx-auto my-6 flex w-full max-w-2xl items-start gap-3 rounded-lg border border-line bg-error-bg px-4 py-3"
    >
      <CircleAlert size={16} className="mt-0.5 shrink-0 text-error" aria-hidden />
      <p className="min-w-0 flex-1 break-words text-body">{error.message}</p>
      {retry && !isPermanent(error) && (
        <Button small onClick={() => retry()}>
          <RotateCw size={13} /> Try again
        </Button>
      )}
    </div>
  );
}

/** Placeholder with the size of the content that is loading. */
export const Skeleton = ({ className }: { className?: string }) => (
  <span aria-hidden className={classes("block h-3.5 animate-pulse-slow rounded bg-line", className)} />
);

/** Placeholder rows of a table. The label appears after one second. */
export function SkeletonRows({ rows = 6, height = 32, label }: { rows?: number; height?: 32 | 56; label: string }) {
  return (
    <div role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, row) => `row ${row}`).map((row) => (
        <div
          key={row}
          className="flex items-center gap-6 border-line border-b pr-3 pl-(--table-start,12px)"
          style={{ height }}
        >
          <Skeleton className="w-1/4" />
          <Skeleton className="w-1/3" />
          <Skeleton className="w-1/6" />
        </div>
      ))}
      <p className="animate-[appear_200ms_1s_both] px-3 py-2 text-table text-text-3">{label}</p>
    </div>
  );
}
