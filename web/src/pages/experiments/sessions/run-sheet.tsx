import { useQuery } from "@tanstack/react-query";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { Id } from "../../../ui/code-block.tsx";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { classes, DetailSection } from "../../../ui/layout.tsx";
import { Sheet } from "../../../ui/overlay/dialog.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { AddToQueue } from "../../traces/run/add-to-queue.tsx";
import { Payload } from "../../traces/run/payload.tsx";
import { RunTraceLink } from "../../traces/trace-link.tsx";
import type { Key } from "../compare/view.ts";
import { latencyOf } from "../metrics.ts";
import { exampleQuery, feedbackQuery, runQuery } from "../queries.ts";
import { feedbackText, isFailed } from "./scores.tsx";

export function RunSheet({ id, keys, onClose }: { id: string | undefined; keys: readonly Key[]; onClose(): void }) {
  const { data: run, error, refetch } = useQuery({ ...runQuery(id ?? ""), enabled: id !== undefined });
  if (id === undefined) return null;
  return (
    <Sheet
      open
      modal={false}
      onClose={onClose}
      title={run?.name ?? "Run"}
      actions={<Id id={id} />}
      description={
        run && (
          <>
            {run.status === "error" ? "Failed" : "Succeeded"} after {latencyOf(run)},{" "}
            <RelativeTime time={run.start_time} />
          </>
        )
      }
    >
      {error ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : run ? (
        <Detail run={run} keys={keys} />
      ) : (
        <SkeletonRows label="Loading run" />
      )}
    </Sheet>
  );
}

function Detail({ run, keys }: { run: ExperimentRun; keys: readonly Key[] }) {
  const example_id = run.reference_example_id ?? undefined;
  const { data: example } = useQuery({ ...exampleQuery(example_id ?? ""), enabled: example_id !== undefined });
  const metadata = run.extra?.metadata as object | undefined;
  return (
    <div className="grid gap-5">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-table">
        <RunTraceLink run_id={run.id} label="Open trace" />
        <AddToQueue run_id={run.id} />
      </div>
      {example?.name && <p className="text-table text-text-2">Example {example.name}</p>}
      {run.error !== null && (
        <DetailSection title="Error">
          <pre className="whitespace-pre-wrap break-words rounded-md bg-error-bg px-3 py-2">{run.error}</pre>
        </DetailSection>
      )}
      <Payload title="Input" value={run.inputs} isPlain />
      {example?.outputs && <Payload title="Expected" value={example.outputs} isPlain />}
      <Payload title="Output" value={run.outputs} isPlain />
      <Feedback run_id={run.id} keys={keys} />
      {metadata && Object.keys(metadata).length > 0 && (
        <DetailSection title="Metadata">
          <JsonTree value={metadata} open={3} />
        </DetailSection>
      )}
    </div>
  );
}

function Feedback({ run_id, keys }: { run_id: string; keys: readonly Key[] }) {
  const { data: feedback, error, refetch } = useQuery(feedbackQuery(run_id));
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  return (
    <DetailSection title="Scores">
      {feedback?.length === 0 && "No scores yet"}
      <dl className="grid grid-cols-[auto_auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-table">
        {feedback?.map((each) => (
          <div key={each.id} className="contents">
            <dt>{each.key}</dt>
            <dd className={classes("text-right font-medium font-mono", isFailed(each) && "text-error")}>
              {feedbackText(each, keys)}
            </dd>
            <dd className="break-words text-text-2">{each.comment}</dd>
          </div>
        ))}
      </dl>
    </DetailSection>
  );
}
