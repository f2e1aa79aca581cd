import { Link } from "@tanstack/react-router";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { count, percent, seconds } from "../../../ui/format.ts";
import { HueDot } from "../../../ui/hue-dot.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { Badge } from "../../../ui/status.tsx";
import type { Column, Sort } from "../../../ui/table/columns.ts";
import { type Selection, selectionColumn } from "../../../ui/table/selection.tsx";
import { type Metric, metadataOf, summaryOf } from "../metrics.ts";
import { SessionMenu } from "../sessions/session-menu.tsx";

export const columnsOf = (
  metrics: readonly Metric[],
  selection: Selection<Session>,
  baseline: string | null,
): Column<Session>[] => [
  selectionColumn(selection),
  {
    id: "name",
    header: "Experiment",
    cell: ({ id, name }) => (
      <span className="inline-flex max-w-full items-center gap-2">
        <Link
          to="/experiments/sessions/$id"
          params={{ id }}
          className="truncate font-medium hover:underline"
          title={name}
        >
          <HueDot name={name} />
          {name}
        </Link>
        {id === baseline && <Badge>baseline</Badge>}
      </span>
    ),
    width: 280,
    grow: true,
    sticky: true,
    sort: "name",
    card: "title",
  },
  {
    id: "number",
    header: "Run",
    cell: ({ test_run_number }) => (test_run_number === null ? "" : `#${count(test_run_number)}`),
    width: 70,
    numeric: true,
    sort: "number",
  },
  ...metrics.filter(isFeedback).map(feedbackColumn),
  {
    id: "latency",
    header: "Latency p50",
    cell: ({ latency_p50 }) => seconds(latency_p50),
    width: 120,
    numeric: true,
    sort: "latency",
    card: "first",
  },
  {
    id: "p99",
    header: "p99",
    cell: ({ latency_p99 }) => seconds(latency_p99),
    width: 90,
    numeric: true,
    sort: "p99",
  },
  {
    id: "error",
    header: "Errors",
    cell: ({ error_rate }) => percent(error_rate),
    width: 90,
    numeric: true,
    sort: "error",
    card: "first",
  },
  { id: "runs", header: "Runs", cell: ({ run_count }) => count(run_count), width: 80, numeric: true, sort: "runs" },
  {
    id: "start",
    header: "Started",
    cell: ({ start_time }) => <RelativeTime time={start_time} />,
    width: 120,
    sort: "start",
  },
  {
    id: "metadata",
    header: "Metadata",
    cell: (session) => (
      <span className="inline-flex gap-1">
        {metadataOf(session).map(([key, value]) => (
          <Badge key={key}>
            {key}: {typeof value === "string" ? value : JSON.stringify(value)}
          </Badge>
        ))}
      </span>
    ),
    width: 320,
    card: "hidden",
  },
  {
    id: "menu",
    header: <span className="sr-only">Actions</span>,
    cell: (session) => <SessionMenu session={session} isBaseline={session.id === baseline} small />,
    width: 56,
    card: "beside",
  },
];

const isFeedback = ({ id }: Metric) => id.startsWith("feedback.") || id.startsWith("summary.");

const feedbackColumn = (metric: Metric): Column<Session> => {
  const { id, name, isLowerBetter } = metric;
  const [, kind, key] = /^(\w+)\.(.*)$/s.exec(id) as unknown as [string, string, string];
  return {
    id,
    header: <span title={isLowerBetter ? "Lower is better" : undefined}>{isLowerBetter ? `${name} ↓` : name}</span>,
    cell: (session) => {
      const stats = (kind === "summary" ? session.session_feedback_stats : session.feedback_stats)?.[key];
      const mean = metric.valueOf(session);
      return (
        <span title={stats && `n ${count(stats.n)}`}>{mean === null ? summaryOf(stats) : metric.format(mean)}</span>
      );
    },
    width: Math.min(Math.max(110, 30 + 8 * name.length), 200),
    numeric: true,
    sort: id,
    card: "first",
  };
};

/** Sorts experiments by a column. Missing values come last in both directions. */
export function sorted(sessions: readonly Session[], metrics: readonly Metric[], { by, descending }: Sort): Session[] {
  const metric = metrics.find(({ id }) => id === by);
  const keyOf = metric ? metric.valueOf : (SORT_KEYS[by] ?? SORT_KEYS.start);
  const sign = descending ? -1 : 1;
  return [...sessions].sort((a, b) => {
    const [left, right] = [keyOf?.(a) ?? null, keyOf?.(b) ?? null];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === "string" && typeof right === "string") return sign * left.localeCompare(right);
    return sign * (Number(left) - Number(right));
  });
}

const SORT_KEYS: Record<string, (session: Session) => string | number | null> = {
  name: ({ name }) => name,
  number: ({ test_run_number }) => test_run_number,
  p99: ({ latency_p99 }) => latency_p99,
  runs: ({ run_count }) => run_count,
  start: ({ start_time }) => start_time,
};
