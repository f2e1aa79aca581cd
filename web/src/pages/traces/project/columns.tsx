import { Link } from "@tanstack/react-router";
import type { ListedRun } from "../../../../../src/experiments/contract/traces/app-traces.ts";
import { cost, count, DASH, duration, number } from "../../../ui/format.ts";
import { RelativeTime } from "../../../ui/relative-time.tsx";
import { Badge, Status } from "../../../ui/status.tsx";
import type { Column } from "../../../ui/table/columns.ts";
import { RunTypeIcon } from "../run-types.tsx";

export const latencyOf = ({ start_time, end_time }: Pick<ListedRun, "start_time" | "end_time">): number | undefined =>
  end_time === null ? undefined : Math.max(0, Date.parse(end_time) - Date.parse(start_time));

const Preview = ({ text }: { text: string | null }) => <span className="text-text-2">{text ?? DASH}</span>;

export const COLUMNS: Column<ListedRun>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ id, trace_id, name, run_type }) => (
      <span className="flex min-w-0 items-center gap-2">
        <RunTypeIcon run_type={run_type} />
        <Link
          to="/traces/$id"
          params={{ id: trace_id }}
          search={id === trace_id ? {} : { run: id }}
          className="truncate rounded font-medium hover:underline"
        >
          {name || "Unnamed run"}
        </Link>
      </span>
    ),
    width: 180,
    sticky: true,
    card: "title",
  },
  { id: "status", header: "Status", cell: ({ status }) => <Status status={status} />, width: 96, card: "beside" },
  {
    id: "input",
    header: "Input",
    cell: ({ inputs_preview }) => <Preview text={inputs_preview} />,
    width: 160,
    grow: true,
    card: "first",
  },
  {
    id: "output",
    header: "Output",
    cell: ({ error, outputs_preview }) =>
      error === null ? <Preview text={outputs_preview} /> : <span className="text-error">{error}</span>,
    width: 160,
    grow: true,
    card: "first",
  },
  {
    id: "start",
    header: "Started",
    cell: ({ start_time }) => <RelativeTime time={start_time} />,
    width: 104,
    sort: "start_time",
  },
  {
    id: "latency",
    header: "Latency",
    cell: (run) => duration(latencyOf(run)),
    width: 90,
    numeric: true,
    sort: "latency",
  },
  {
    id: "tokens",
    header: "Tokens",
    cell: ({ total_tokens }) => (total_tokens === 0 ? DASH : count(total_tokens)),
    width: 90,
    numeric: true,
    sort: "total_tokens",
  },
  {
    id: "cost",
    header: "Cost",
    cell: ({ total_cost }) => cost(total_cost),
    width: 90,
    numeric: true,
    sort: "total_cost",
  },
  {
    id: "feedback",
    header: "Feedback",
    cell: ({ feedback_stats }) => (
      <span className="inline-flex gap-1">
        {Object.entries(feedback_stats).map(([key, { avg, values }]) => (
          <Badge key={key}>
            {key} {avg === null ? Object.keys(values).join(", ") : number(avg)}
          </Badge>
        ))}
      </span>
    ),
    width: 140,
    card: "hidden",
  },
  {
    id: "tags",
    header: "Tags",
    cell: ({ tags }) => (
      <span className="inline-flex gap-1">
        {tags.map((tag) => (
          <Badge key={tag}>{tag}</Badge>
        ))}
      </span>
    ),
    width: 130,
    card: "hidden",
  },
];
