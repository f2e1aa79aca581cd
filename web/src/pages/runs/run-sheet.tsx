import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { DatabaseZap } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { useMay } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Copy } from "../../ui/code-block.tsx";
import { duration } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Sheet } from "../../ui/overlay/dialog.tsx";
import { SplitButton } from "../../ui/overlay/split-button.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { AddToDataset } from "../traces/run/add-to-dataset.tsx";
import { RunTraceLink } from "../traces/trace-link.tsx";
import { CANCEL_ACTIONS } from "./cancel-actions.ts";
import { durationOf, isActive, Note, queueTimeOf, RunState } from "./columns.tsx";
import { outputQuery, runQuery, runRequestQuery } from "./queries.ts";

/** A run's times, input and output. The list behind the sheet stays usable. */
export function RunSheet({
  run_id,
  nameOf,
  onCancel,
  onClose,
}: {
  run_id: string | undefined;
  nameOf(run: RunOverviewItem): string;
  onCancel(run: RunOverviewItem, action: CancelAction): void;
  onClose(): void;
}) {
  const { data: run, error, refetch } = useQuery({ ...runQuery(run_id ?? ""), enabled: run_id !== undefined });
  const [primary, ...others] = CANCEL_ACTIONS;
  return (
    <Sheet
      open={run_id !== undefined}
      onClose={onClose}
      modal={false}
      width={560}
      title={run ? nameOf(run) : "Run"}
      actions={
        run &&
        isActive(run) && (
          <SplitButton
            look="danger"
            menuLabel="Cancel options"
            title={primary.hint}
            onClick={() => onCancel(run, primary.action)}
            items={others.map(({ action, label, hint }) => ({ label, hint, onSelect: () => onCancel(run, action) }))}
          >
            {primary.label}
          </SplitButton>
        )
      }
    >
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {run === undefined && !error && <SkeletonRows label="Loading run" rows={4} />}
      {run === null && (
        <EmptyState title="Run not found">
          The run was rolled back, was deleted or belongs to another workspace.
        </EmptyState>
      )}
      {run && <Detail run={run} />}
    </Sheet>
  );
}

function Detail({ run }: { run: RunOverviewItem }) {
  const request = useQuery(runRequestQuery(run));
  const hasOutput = !isActive(run) && run.error === null;
  const output = useQuery({ ...outputQuery(run), enabled: hasOutput });
  const mayAdd = useMay("experiments") === true;
  const [isAdding, setAdding] = useState(false);
  const now = Date.now();
  const { config, input, command, ...rest } = request.data?.kwargs ?? {};
  return (
    <div className="grid gap-5">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-center gap-x-6 gap-y-1 text-table">
        <Fact name="Status">
          <RunState run={run} />
        </Fact>
        <Fact name="Run">
          <FullId id={run.run_id} />
          <span className="ml-2">
            <RunTraceLink run_id={run.run_id} state={run.status} label="Open trace" />
          </span>
        </Fact>
        <Fact name="Thread">
          <FullId id={run.thread_id} />
          {!run.is_stateless && (
            <Link
              to={`/threads/${run.thread_id}`}
              className="ml-2 whitespace-nowrap rounded text-accent-text hover:underline"
            >
              Open thread
            </Link>
          )}
        </Fact>
        <Fact name="Created">
          <RelativeTime time={run.created_at} />
        </Fact>
        <Fact name="Queue time">
          <span className="font-mono">{duration(queueTimeOf(run, now))}</span>
        </Fact>
        <Fact name="Duration">
          <span className="font-mono">{duration(durationOf(run, now))}</span>
        </Fact>
        <Fact name="Attempts">{run.attempt}</Fact>
      </dl>
      <p className="whitespace-pre-wrap break-words text-body empty:hidden">
        <Note run={run} now={now} />
      </p>
      {request.error && <ErrorState error={request.error} retry={() => void request.refetch()} />}
      {command != null && <Json title="Command" value={command} />}
      {input != null && <Json title="Input" value={input} />}
      {hasOutput && output.data !== undefined && <Json title="Final state" value={output.data} />}
      {mayAdd && input != null && output.data != null && (
        <Button small className="justify-self-start" onClick={() => setAdding(true)}>
          <DatabaseZap size={13} aria-hidden /> Add to dataset
        </Button>
      )}
      {isAdding && (
        <AddToDataset inputs={input} outputs={output.data} run_id={run.run_id} onClose={() => setAdding(false)} />
      )}
      {output.error && <ErrorState error={output.error} retry={() => void output.refetch()} />}
      {request.data && <Json title="Settings" value={{ ...rest, config, metadata: request.data.metadata }} open={0} />}
    </div>
  );
}

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <>
    <dt className="text-text-3">{name}</dt>
    <dd className="flex min-h-6 items-center">{children}</dd>
  </>
);

const FullId = ({ id }: { id: string }) => (
  <>
    <code className="min-w-0 truncate">{id}</code>
    <Copy text={id} label={`Copy ID ${id}`} />
  </>
);

const Json = ({ title, value, open = 2 }: { title: string; value: unknown; open?: number }) => (
  <section>
    <h3 className="mb-1 font-medium text-table">{title}</h3>
    <div className="rounded-lg border border-line bg-sunken px-2 py-1.5">
      <JsonTree value={value} open={open} />
    </div>
  </section>
);
