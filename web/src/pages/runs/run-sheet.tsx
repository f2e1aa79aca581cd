import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Copy } from "../../ui/code-block.tsx";
import { Sheet } from "../../ui/dialog.tsx";
import { duration } from "../../ui/format.ts";
import { JsonTree } from "../../ui/json-tree.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SplitButton } from "../../ui/split-button.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../ui/states.tsx";
import { CANCEL_ACTIONS } from "./cancel-words.ts";
import { isActive, Note, RunState, tookOf, waitedOf } from "./columns.tsx";
import { orderQuery, outputQuery, runQuery } from "./queries.ts";

/** One run: its times, what it was given, and what it answered. The list behind it stays usable. */
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
  const [usual, ...others] = CANCEL_ACTIONS;
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
            menuLabel="Other ways to cancel"
            title={usual.hint}
            onClick={() => onCancel(run, usual.action)}
            items={others.map(({ action, label, hint }) => ({ label, hint, onSelect: () => onCancel(run, action) }))}
          >
            {usual.label}
          </SplitButton>
        )
      }
    >
      {error && <ErrorState error={error} retry={() => void refetch()} />}
      {run === undefined && !error && <SkeletonRows label="Fetching the run" rows={4} />}
      {run === null && (
        <EmptyState title="This run is not there">
          It was rolled back, deleted, or it belongs to another workspace.
        </EmptyState>
      )}
      {run && <Detail run={run} />}
    </Sheet>
  );
}

function Detail({ run }: { run: RunOverviewItem }) {
  const order = useQuery(orderQuery(run));
  const hasAnswer = !isActive(run) && run.error === null;
  const output = useQuery({ ...outputQuery(run), enabled: hasAnswer });
  const now = Date.now();
  const { config, input, command, ...rest } = order.data?.kwargs ?? {};
  return (
    <div className="grid gap-5">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-center gap-x-6 gap-y-1 text-table">
        <Fact name="Status">
          <RunState run={run} />
        </Fact>
        <Fact name="Run">
          <FullId id={run.run_id} />
        </Fact>
        <Fact name="Thread">
          <FullId id={run.thread_id} />
          {!run.is_stateless && (
            <Button asChild small look="quiet" className="ml-2">
              <Link to={`/threads/${run.thread_id}`}>Open the thread</Link>
            </Button>
          )}
        </Fact>
        <Fact name="Accepted">
          <RelativeTime time={run.created_at} />
        </Fact>
        <Fact name="Waited">
          <span className="font-mono">{duration(waitedOf(run, now))}</span>
        </Fact>
        <Fact name="Ran">
          <span className="font-mono">{duration(tookOf(run, now))}</span>
        </Fact>
        <Fact name="Attempts">{run.attempt}</Fact>
      </dl>
      <p className="whitespace-pre-wrap break-words text-body empty:hidden">
        <Note run={run} now={now} />
      </p>
      {order.error && <ErrorState error={order.error} retry={() => void order.refetch()} />}
      {command != null && <Json title="Command" value={command} />}
      {input != null && <Json title="Input" value={input} />}
      {hasAnswer && output.data !== undefined && <Json title="Values at its end" value={output.data} />}
      {output.error && <ErrorState error={output.error} retry={() => void output.refetch()} />}
      {order.data && <Json title="Settings" value={{ ...rest, config, metadata: order.data.metadata }} open={0} />}
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
    <Copy text={id} label={`Copy the id ${id}`} />
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
