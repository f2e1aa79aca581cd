import type { RunStats } from "../../../../../src/experiments/contract/runs.ts";
import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { cost, count, percent, seconds } from "../../../ui/format.ts";
import { ScrollRegion } from "../../../ui/layout.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { Figure, Score } from "../../experiments/sessions/session-stats.tsx";

type Statistics = Pick<
  Session,
  | "run_count"
  | "error_rate"
  | "latency_p50"
  | "latency_p99"
  | "first_token_p50"
  | "first_token_p99"
  | "total_tokens"
  | "prompt_tokens"
  | "completion_tokens"
  | "total_cost"
  | "last_run_start_time"
  | "feedback_stats"
>;

/** Statistics of a project, or of the runs that match the filters. */
export function ProjectStats({ project, matching }: { project: Session; matching: RunStats | undefined }) {
  const stats: Statistics = matching ?? project;
  return (
    <ScrollRegion label="Statistics" className="shrink-0 overflow-x-auto border-line border-b">
      <dl className="flex w-max px-2 py-2">
        <Figure
          name={matching ? "matching" : "traces"}
          value={count(stats.run_count)}
          note={
            <>
              last <RelativeTime time={stats.last_run_start_time} />
            </>
          }
        />
        <Figure name="errors" value={percent(stats.error_rate)} note="of finished runs" />
        <Figure name="latency p50" value={seconds(stats.latency_p50)} note={`p99 ${seconds(stats.latency_p99)}`} />
        <Figure
          name="first token p50"
          value={seconds(stats.first_token_p50)}
          note={`p99 ${seconds(stats.first_token_p99)}`}
        />
        <Figure
          name="tokens"
          value={count(stats.total_tokens)}
          note={`${count(stats.prompt_tokens)} in, ${count(stats.completion_tokens)} out`}
        />
        <Figure name="cost" value={cost(stats.total_cost)} note="USD" />
        {Object.entries(stats.feedback_stats ?? {}).map(([key, keyStats]) => (
          <Score key={key} name={key} stats={keyStats} />
        ))}
        {!matching &&
          Object.entries(project.session_feedback_stats ?? {}).map(([key, keyStats]) => (
            <Score key={`all ${key}`} name={`${key} (all)`} stats={keyStats} />
          ))}
      </dl>
    </ScrollRegion>
  );
}
