import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ChevronDown } from "lucide-react";
import type { RunOverviewItem } from "../../../../src/agent-server/contract/app-runs.ts";
import type { CancelAction } from "../../../../src/agent-server/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { DASH, duration } from "../../ui/format.ts";
import { HueDot } from "../../ui/hue-dot.tsx";
import { Menu } from "../../ui/overlay/menu.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { Badge, Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table/columns.ts";
import { CANCEL_ACTIONS } from "./cancel-actions.ts";
import { previewQuery } from "./queries.ts";

export interface RunActions {
  chosen: ReadonlySet<string>;
  choose(run_id: string, isChosen: boolean): void;
  cancel(run: RunOverviewItem, action: CancelAction): void;
  nameOf(run: RunOverviewItem): string;
  /** Current time in ms since the epoch, for the durations of active runs. */
  now: number;
}

export const isActive = ({ ended_at }: RunOverviewItem): boolean => ended_at === null;

const between = (from: string | null, to: string | null, now: number): number | null =>
  from === null ? null : Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from));

/** Time that a run spent in the queue since its creation, or since its scheduled start. */
export const queueTimeOf = (run: RunOverviewItem, now: number): number | null =>
  between(run.start_at, run.started_at ?? run.ended_at, now);
/** Execution time of a run. */
export const durationOf = (run: RunOverviewItem, now: number): number | null =>
  between(run.started_at, run.ended_at, now);

export function columnsFor({ chosen, choose, cancel, nameOf, now }: RunActions): Column<RunOverviewItem>[] {
  return [
    {
      id: "choose",
      header: <span className="sr-only">Select</span>,
      width: 52,
      card: "hidden",
      cell: (run) =>
        isActive(run) && (
          <input
            type="checkbox"
            className="block size-3.5 accent-accent"
            aria-label={`Select run ${run.run_id}`}
            checked={chosen.has(run.run_id)}
            onChange={({ target }) => choose(run.run_id, target.checked)}
          />
        ),
    },
    {
      id: "run",
      header: "Run",
      width: 92,
      card: "title",
      cell: ({ run_id }) => (
        <Link
          to="."
          search={(before: object) => ({ ...before, run: run_id })}
          className="rounded font-mono text-accent-text hover:underline"
          title={run_id}
        >
          {/* IDs begin with a timestamp, so runs of the same minute differ only at the end of their IDs. */}
          {run_id.slice(-8)}
        </Link>
      ),
    },
    { id: "status", header: "Status", width: 116, card: "first", cell: (run) => <RunState run={run} /> },
    {
      id: "assistant",
      header: "Assistant",
      width: 130,
      card: "first",
      cell: (run) => (
        <span className="flex items-center gap-2">
          <span className="min-w-0 truncate">
            <HueDot name={nameOf(run)} />
            {nameOf(run)}
          </span>
          {run.is_stateless && (
            <span className="shrink-0">
              <Badge>stateless</Badge>
            </span>
          )}
        </span>
      ),
    },
    {
      id: "texts",
      header: "Input, output",
      width: 238,
      grow: true,
      card: "first",
      cell: (run) => <Texts run={run} now={now} />,
    },
    {
      id: "thread",
      header: "Thread",
      width: 92,
      cell: ({ thread_id, is_stateless }) =>
        is_stateless ? (
          DASH
        ) : (
          <Link to={`/threads/${thread_id}`} className="rounded font-mono hover:underline" title={thread_id}>
            {thread_id.slice(-8)}
          </Link>
        ),
    },
    { id: "queue", header: "Queue time", width: 96, numeric: true, cell: (run) => duration(queueTimeOf(run, now)) },
    { id: "duration", header: "Duration", width: 84, numeric: true, cell: (run) => duration(durationOf(run, now)) },
    { id: "created", header: "Created", width: 100, cell: ({ created_at }) => <RelativeTime time={created_at} /> },
    {
      id: "cancel",
      header: <span className="sr-only">Cancel</span>,
      width: 104,
      cell: (run) =>
        isActive(run) && (
          <Menu
            items={CANCEL_ACTIONS.map(({ action, label, hint }) => ({
              label,
              hint,
              onSelect: () => cancel(run, action),
            }))}
          >
            <Button small look="danger" aria-label={`Cancel run ${run.run_id}`}>
              Cancel <ChevronDown size={13} aria-hidden />
            </Button>
          </Menu>
        ),
    },
  ];
}

/** The input of a run, above its output or what {@link Note} says about it. */
function Texts({ run, now }: { run: RunOverviewItem; now: number }) {
  const { data } = useQuery(previewQuery(run));
  return (
    <>
      <div className="truncate">{data?.input ?? DASH}</div>
      <div className="truncate text-text-2">
        {isActive(run) || run.error || run.cancel_reason ? <Note run={run} now={now} /> : (data?.output ?? DASH)}
      </div>
    </>
  );
}

/** Status of a run. Shows "stopping" while a cancellation is pending. */
export const RunState = ({ run }: { run: RunOverviewItem }) =>
  run.stopping ? <Status status="stopping" kind="interrupted" /> : <Status status={run.status} />;

/** Shows a run's error, cancel reason, scheduled start or attempt number. */
export function Note({ run, now }: { run: RunOverviewItem; now: number }) {
  const { error, cancel_reason, attempt, start_at, started_at, ended_at } = run;
  if (error)
    return (
      <span className="text-error" title={error.message}>
        {error.error}: {error.message}
      </span>
    );
  if (cancel_reason) return cancel_reason;
  if (ended_at === null && started_at === null && Date.parse(start_at) > now)
    return (
      <>
        Starts <RelativeTime time={start_at} isAhead />
      </>
    );
  return attempt > 1 ? `Attempt ${attempt}` : "";
}
