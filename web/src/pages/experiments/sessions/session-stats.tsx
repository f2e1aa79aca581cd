import type { ReactNode } from "react";
import type { KeyStats, Session } from "../../../../../src/experiments/contract/sessions.ts";
import { count, DASH, number, percent, seconds } from "../../../ui/format.ts";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { Badge } from "../../../ui/status.tsx";
import { metadataOf, summaryOf } from "../metrics.ts";

export function SessionStats({ session }: { session: Session }) {
  const { description, feedback_stats, session_feedback_stats, start_time, test_run_number } = session;
  const metadata = metadataOf(session);
  return (
    <ScrollRegion label="Statistics" className="shrink-0 overflow-x-auto border-line border-b">
      <dl className="flex w-max px-2 py-2">
        {Object.entries(feedback_stats ?? {}).map(([key, stats]) => (
          <Score key={key} name={key} stats={stats} />
        ))}
        {Object.entries(session_feedback_stats ?? {}).map(([key, stats]) => (
          <Score key={`all ${key}`} name={`${key} (all)`} stats={stats} />
        ))}
        <Figure name="latency p50" value={seconds(session.latency_p50)} note={`p99 ${seconds(session.latency_p99)}`} />
        <Figure
          name="errors"
          value={percent(session.error_rate)}
          note={`of ${count(session.run_count)} ${session.run_count === 1 ? "run" : "runs"}`}
        />
        <Figure
          name="run"
          value={test_run_number === null ? DASH : `#${count(test_run_number)}`}
          note={<RelativeTime time={start_time} />}
        />
      </dl>
      {(description || metadata.length > 0) && (
        <p className="sticky left-0 flex max-w-full flex-wrap items-center gap-1.5 px-6 pb-2.5 text-table text-text-2 max-sm:px-4">
          {description && <span className="mr-2">{description}</span>}
          {metadata.map(([key, value]) => (
            <Badge key={key}>
              {key}: {typeof value === "string" ? value : JSON.stringify(value)}
            </Badge>
          ))}
        </p>
      )}
    </ScrollRegion>
  );
}

export const Score = ({ name, stats }: { name: string; stats: KeyStats }) => (
  <Figure
    name={name}
    value={summaryOf(stats)}
    note={`${stats.stdev === null ? "" : `sd ${number(stats.stdev)}, `}n ${count(stats.n)}${stats.errors > 0 ? `, ${count(stats.errors)} failed` : ""}`}
  />
);

export const Figure = ({ name, value, note }: { name: string; value: string; note: ReactNode }) => (
  <div className="grid min-w-28 gap-0.5 border-line border-r px-4 text-table last:border-r-0">
    <dt className="max-w-48 truncate text-text-2">{name}</dt>
    <dd className="font-medium font-mono text-body">{value}</dd>
    <dd className="text-text-3">{note}</dd>
  </div>
);
