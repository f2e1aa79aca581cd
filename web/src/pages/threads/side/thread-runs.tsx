import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { Run } from "../../../../../src/agent-server/contract/records.ts";
import { useTarget } from "../../../api/target.ts";
import { Id } from "../../../ui/code-block.tsx";
import { duration } from "../../../ui/format.ts";
import { HueDot } from "../../../ui/hue-dot.tsx";
import { SplitButton } from "../../../ui/overlay/split-button.tsx";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { EmptyState } from "../../../ui/states.tsx";
import { Status } from "../../../ui/status.tsx";
import { assistantsQuery } from "../../agents/queries.ts";
import { TraceLink, useTracedRuns } from "../../traces/trace-link.tsx";
import { isActive, useCancel } from "../cancel.ts";

/** A thread's runs, newest first. One or more active runs can be cancelled. */
export function Runs({ thread_id, runs }: { thread_id: string; runs: readonly Run[] }) {
  const { data: assistants } = useQuery(assistantsQuery);
  const names = useMemo(() => new Map(assistants?.map(({ assistant_id, name }) => [assistant_id, name])), [assistants]);
  const traced = useTracedRuns(
    runs.map(({ run_id }) => run_id),
    runs.map(({ status }) => status).join(),
  );
  const [selectedIds, setSelectedIds] = useState<readonly string[]>([]);
  const { cancel, items } = useCancel(thread_id);
  // Deployments do not list their runs.
  const mayOpen = useTarget() === undefined;
  const active = runs.filter(isActive).map(({ run_id }) => run_id);
  const chosen = active.filter((run_id) => selectedIds.includes(run_id));
  const many = chosen.length > 0 ? chosen : active;
  if (runs.length === 0) return <EmptyState title="No runs yet">Send a message to start a run.</EmptyState>;
  return (
    <>
      {active.length > 0 && (
        <div className="mb-2 flex items-center justify-between gap-2">
          <span className="text-table text-text-2">
            {active.length === 1 ? "1 active run" : `${active.length} active runs`}
          </span>
          <SplitButton menuLabel="Cancel options" items={items(many)} onClick={() => void cancel(many, "interrupt")}>
            {chosen.length > 0
              ? `Cancel ${chosen.length} selected`
              : active.length === 1
                ? "Cancel run"
                : `Cancel all ${active.length}`}
          </SplitButton>
        </div>
      )}
      <ul aria-label="Runs" className="divide-y divide-line">
        {runs.map((run) => (
          <li key={run.run_id} className="grid gap-0.5 py-2 text-table">
            <div className="flex items-center gap-2">
              {isActive(run) && (
                <input
                  type="checkbox"
                  aria-label={`Select run ${run.run_id}`}
                  className="size-3.5 accent-accent"
                  checked={selectedIds.includes(run.run_id)}
                  onChange={({ target }) =>
                    setSelectedIds((before) =>
                      target.checked ? [...before, run.run_id] : before.filter((id) => id !== run.run_id),
                    )
                  }
                />
              )}
              <Status status={run.status} />
              {mayOpen && (
                <Link
                  to="/runs"
                  search={{ run: run.run_id }}
                  className="rounded text-accent-text hover:underline"
                  aria-label={`Open run ${run.run_id}`}
                >
                  Open run
                </Link>
              )}
              <span className="ml-auto text-text-3">
                <RelativeTime time={run.created_at} />
              </span>
            </div>
            <div className="flex items-center gap-2 text-text-2">
              <span className="min-w-0 truncate">
                {names.has(run.assistant_id) && <HueDot name={names.get(run.assistant_id) as string} />}
                {names.get(run.assistant_id) ?? "Deleted assistant"}
              </span>
              <Id id={run.run_id} />
              <TraceLink run={traced.get(run.run_id)} />
              {!isActive(run) && (
                <span className="ml-auto font-mono">
                  {duration(Date.parse(run.updated_at) - Date.parse(run.created_at))}
                </span>
              )}
            </div>
            {run.cancel_reason && <p className="text-text-3">{run.cancel_reason}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}
