import { Ban, CircleCheck, CircleDot, CirclePause, CircleX, Clock, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { classes } from "./layout.tsx";

const KINDS = {
  pending: { icon: Clock, color: "text-pending" },
  running: { icon: CircleDot, color: "text-running" },
  success: { icon: CircleCheck, color: "text-success" },
  interrupted: { icon: CirclePause, color: "text-interrupted" },
  error: { icon: CircleX, color: "text-error" },
  off: { icon: Ban, color: "text-pending" },
} as const satisfies Record<string, { icon: LucideIcon; color: string }>;

export type StatusKind = keyof typeof KINDS;

/** Maps statuses that are not themselves a {@link StatusKind}. */
const KIND_OF: Record<string, StatusKind> = {
  busy: "running",
  idle: "success",
  timeout: "error",
  revoked: "off",
  active: "success",
};

/** Shows a status with a coloured icon and a capital first letter. The icon of a running status pulses slowly. */
export function Status({ status, kind }: { status: string; kind?: StatusKind }) {
  const shown = kind ?? KIND_OF[status] ?? (status in KINDS ? (status as StatusKind) : "pending");
  const { icon: Icon, color } = KINDS[shown];
  return (
    <span className={classes("inline-flex items-center gap-1.5 whitespace-nowrap text-table", color)}>
      <Icon size={14} aria-hidden className={classes(shown === "running" && "animate-pulse-slow")} />
      <span className="first-letter:uppercase">{status}</span>
    </span>
  );
}

/** A short label, such as a tag, a scope or a version. */
export function Badge({ children, mono }: { children: ReactNode; mono?: boolean }) {
  return (
    <span
      className={classes(
        "inline-flex items-center whitespace-nowrap rounded border border-line bg-sunken px-1.5 text-table text-text-2",
        mono && "font-mono",
      )}
    >
      {children}
    </span>
  );
}
