import { Link } from "@tanstack/react-router";
import type { ExampleWithRuns } from "../../../../../../src/experiments/contract/comparison.ts";
import { delta, duration } from "../../../../ui/format.ts";
import { JsonTree } from "../../../../ui/json-tree.tsx";
import { Status } from "../../../../ui/status.tsx";
import { AddToQueue } from "../../../traces/run/add-to-queue.tsx";
import { RunTraceLink } from "../../../traces/trace-link.tsx";
import { UntestedChange } from "../change-mark.tsx";
import type { View } from "../view.ts";
import { Annotations } from "./annotations.tsx";
import { Payload } from "./payload.tsx";

type Run = ExampleWithRuns["runs"][number];

const latencyOf = ({ start_time, end_time }: Run): number | undefined =>
  end_time === null ? undefined : Date.parse(end_time) - Date.parse(start_time);

export function RunCard({
  view,
  run,
  repetition,
  baseline,
  before,
}: {
  view: View;
  run: Run;
  /** Text such as "Run 1 of 3". Undefined if there is only one run. */
  repetition: string | undefined;
  /** The baseline's runs on the example. Undefined for the baseline itself. */
  baseline: readonly Run[] | undefined;
  before: Record<string, unknown> | null | undefined;
}) {
  const latency = latencyOf(run);
  const from = baseline?.[0] && latencyOf(baseline[0]);
  const difference = latency === undefined || from === undefined ? undefined : latency - from;
  const metadata = (run.extra?.metadata ?? {}) as Record<string, unknown>;
  return (
    <div className="grid min-w-0 gap-2">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-table">
        {repetition && <span className="font-medium">{repetition}</span>}
        <Status status={run.status} />
        <span className="font-mono">{duration(latency)}</span>
        {difference !== undefined && (
          <span className="font-mono">
            <UntestedChange difference={difference}>{delta(difference, duration)}</UntestedChange>
          </span>
        )}
        <Link
          to={`/experiments/sessions/${run.session_id}?run=${run.id}` as "/"}
          className="rounded text-accent-text hover:underline"
        >
          Open run
        </Link>
        <RunTraceLink run_id={run.id} />
        <AddToQueue run_id={run.id} />
      </div>
      {run.error !== null && (
        <pre className="max-h-60 overflow-auto whitespace-pre-wrap break-words rounded-lg bg-error-bg px-3 py-2 text-error">
          {run.error}
        </pre>
      )}
      {(run.outputs !== null || run.error === null) && (
        <Payload title="Output" value={run.outputs} before={before ?? undefined} />
      )}
      <Annotations view={view} run={run} baseline={baseline?.[0]?.feedbacks} />
      {Object.keys(metadata).length > 0 && (
        <details className="text-table">
          <summary className="cursor-pointer rounded text-text-2">Run metadata</summary>
          <JsonTree value={metadata} />
        </details>
      )}
    </div>
  );
}
