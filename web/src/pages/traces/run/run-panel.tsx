import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Copy as CopyIcon } from "lucide-react";
import type { ReactNode } from "react";
import type { ExperimentRun } from "../../../../../src/experiments/contract/runs.ts";
import { IS_PUBLIC_PAGE } from "../../../api/request.ts";
import { Button } from "../../../ui/button.tsx";
import { Copy, Id } from "../../../ui/code-block.tsx";
import { copyAndConfirm } from "../../../ui/copy-text.ts";
import { cost, count, duration } from "../../../ui/format.ts";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { DetailSection } from "../../../ui/layout.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Status } from "../../../ui/status.tsx";
import { Tabs } from "../../../ui/tabs.tsx";
import type { RunTab } from "../page.ts";
import { feedbackQuery, type LoadedTrace, runQuery, type TraceSource } from "../queries.ts";
import { RunTypeIcon } from "../run-types.tsx";
import type { TraceNode } from "../trace/trace-tree.ts";
import { Attachments } from "./attachments.tsx";
import { FeedbackTab } from "./feedback-tab.tsx";
import { Payload } from "./payload.tsx";
import { RunActions } from "./run-actions.tsx";
import { RunDetails } from "./run-details.tsx";

/** The selected run of a trace. Its status, latency and cost are shown before its payloads are loaded. */
export function RunPanel({
  source,
  node,
  trace,
  tab,
  onTab,
}: {
  source: TraceSource;
  node: TraceNode;
  trace: LoadedTrace;
  tab: RunTab;
  onTab(tab: RunTab): void;
}) {
  const { data: run, error, refetch } = useQuery(runQuery(source, node.run.id, trace.version));
  const feedback = useQuery({ ...feedbackQuery(node.run.id), enabled: !IS_PUBLIC_PAGE });
  const content = (of: (run: ExperimentRun) => ReactNode) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <div tabIndex={0} className="min-h-0 flex-1 overflow-y-auto px-6 py-4 -outline-offset-2 max-sm:px-4">
      {error && !run ? (
        <ErrorState error={error} retry={() => void refetch()} />
      ) : run ? (
        of(run)
      ) : (
        <SkeletonRows label="Loading run" rows={4} />
      )}
    </div>
  );
  return (
    <>
      <Header node={node} run={run} actions={!IS_PUBLIC_PAGE && run && <RunActions run={run} />} />
      <Tabs
        fill
        label="Run"
        value={tab}
        onChange={onTab}
        tabs={[
          { value: "io", label: "Input and output", content: content((loaded) => <InputOutput run={loaded} />) },
          ...(IS_PUBLIC_PAGE
            ? []
            : [
                {
                  value: "feedback" as const,
                  label: feedback.data?.length ? `Feedback (${feedback.data.length})` : "Feedback",
                  content: content((loaded) => <FeedbackTab run={loaded} />),
                },
              ]),
          { value: "details", label: "Details", content: content((loaded) => <RunDetails run={loaded} />) },
          { value: "raw", label: "JSON", content: content((loaded) => <Raw run={loaded} />) },
        ]}
      />
    </>
  );
}

function Header({
  node: { run: light, start, end, firstToken },
  run,
  actions,
}: {
  node: TraceNode;
  run: ExperimentRun | undefined;
  actions: ReactNode;
}) {
  const metadata = (run?.extra?.metadata ?? {}) as Record<string, unknown>;
  const model = metadata.ls_model_name;
  return (
    <div className="grid gap-1.5 px-6 pt-3 pb-1 max-sm:px-4">
      <div className="flex min-w-0 flex-wrap items-center gap-2">
        <RunTypeIcon run_type={light.run_type} />
        <h2 className="min-w-0 max-w-full truncate font-semibold text-body">{light.name || "Unnamed run"}</h2>
        <Id id={light.id} />
        <span className="ml-auto flex flex-wrap gap-1">{actions}</span>
      </div>
      <dl className="flex flex-wrap gap-x-5 gap-y-0.5 text-table">
        <Fact name="Status" isHidden>
          <Status status={light.status} />
        </Fact>
        <Fact name="Latency">{end === undefined ? "pending" : duration(Math.max(0, end - start))}</Fact>
        {firstToken !== undefined && <Fact name="First token">{duration(Math.max(0, firstToken - start))}</Fact>}
        {light.total_tokens > 0 && (
          <Fact name="Tokens">
            {count(light.total_tokens)}
            {run && (
              <span className="text-text-3">
                {" "}
                ({count(run.prompt_tokens)} in, {count(run.completion_tokens)} out)
              </span>
            )}
          </Fact>
        )}
        {light.total_cost !== null && <Fact name="Cost">{cost(light.total_cost)}</Fact>}
        {typeof model === "string" && <Fact name="Model">{model}</Fact>}
        <Fact name="Started">
          <RelativeTime time={light.start_time} />
        </Fact>
        {run?.thread_id && !IS_PUBLIC_PAGE && (
          <Fact name="Thread">
            <Link
              to="/traces/projects/$id"
              params={{ id: run.session_id }}
              search={{ thread: run.thread_id }}
              title={`Traces of the thread ${run.thread_id}`}
              className="rounded text-accent-text hover:underline"
            >
              {run.thread_id.slice(-8)}
            </Link>
          </Fact>
        )}
      </dl>
    </div>
  );
}

const Fact = ({ name, isHidden, children }: { name: string; isHidden?: boolean; children: ReactNode }) => (
  <div className="flex min-w-0 gap-1.5">
    <dt className={isHidden ? "sr-only" : "text-text-3"}>{name}</dt>
    <dd className="min-w-0 truncate">{children}</dd>
  </div>
);

/** The error, the payloads and the attachments of a run. */
export function InputOutput({ run }: { run: ExperimentRun }) {
  return (
    <div className="grid grid-cols-1 gap-5">
      {run.error !== null && (
        <DetailSection title="Error">
          <div className="flex items-start gap-2 rounded-lg bg-error-bg py-1.5 pr-1.5 pl-3">
            <pre className="max-h-96 min-w-0 flex-1 overflow-auto whitespace-pre-wrap break-words py-0.5 text-error">
              {run.error}
            </pre>
            <Copy text={run.error} label="Copy error" />
          </div>
        </DetailSection>
      )}
      <Payload title="Input" value={run.inputs} />
      <Payload title="Output" value={run.outputs} isPending={run.status === "pending"} />
      <Attachments run={run} />
    </div>
  );
}

/** The JSON text is created only on a click, because a run can be 20 MB. */
function Raw({ run }: { run: ExperimentRun }) {
  return (
    <div className="grid grid-cols-1 gap-2">
      <Button
        small
        className="justify-self-start"
        onClick={() => copyAndConfirm(JSON.stringify(run, null, 2), "JSON copied")}
      >
        <CopyIcon size={13} aria-hidden /> Copy JSON
      </Button>
      <JsonTree value={run} open={1} />
    </div>
  );
}
