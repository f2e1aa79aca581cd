import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { X } from "lucide-react";
import { Button } from "../../ui/button.tsx";
import { DebouncedInput } from "../../ui/form/debounced-input.tsx";
import { Select } from "../../ui/form/select.tsx";
import { capitalized } from "../../ui/format.ts";
import { assistantsQuery } from "../agents/queries.ts";
import { isFiltered, type RunsSearch, runsRoute, STATUSES } from "./page.ts";

const ALL = "all";

const STATUS_OPTIONS = [
  { value: ALL, label: "Any status" },
  { value: "active", label: "Pending and running" },
  { value: "failed", label: "Failed", hint: "Error or timeout" },
  ...STATUSES.map((status) => ({ value: status, label: capitalized(status) })),
] as const;

const SINCE_OPTIONS = [
  { value: ALL, label: "Any time" },
  { value: "15m", label: "Last 15 minutes" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
] as const;

export function Filters() {
  const search = runsRoute.useSearch();
  const navigate = runsRoute.useNavigate();
  const change = (changed: RunsSearch) =>
    void navigate({ search: (before: RunsSearch) => ({ ...before, ...changed }), replace: true });
  const { status, assistant, thread, since, ended_from, ended_until } = search;
  return (
    <search className="flex flex-wrap items-center gap-2 px-6 py-2 max-sm:px-4" aria-label="Filters">
      <Select
        aria-label="Status"
        value={status ?? ALL}
        options={STATUS_OPTIONS}
        onChange={(value) => change({ status: value === ALL ? undefined : value })}
        className="w-44 max-sm:w-[calc(50%-4px)]"
      />
      <Select
        aria-label="Time"
        value={since ?? ALL}
        options={SINCE_OPTIONS}
        onChange={(value) => change({ since: value === ALL ? undefined : value })}
        className="w-40 max-sm:w-[calc(50%-4px)]"
      />
      <AssistantFilter value={assistant} onChange={(value) => change({ assistant: value })} />
      <DebouncedInput
        aria-label="Thread"
        placeholder="Complete or partial thread ID"
        value={thread}
        onChange={(text) => change({ thread: text?.trim() || undefined })}
        className="!w-72 font-mono !text-table max-sm:!w-[calc(50%-4px)]"
      />
      {(ended_from ?? ended_until) !== undefined && (
        <Button title="Remove this filter" onClick={() => change({ ended_from: undefined, ended_until: undefined })}>
          {["Ended", ended_from && `from ${timeLabel(ended_from)}`, ended_until && `to ${timeLabel(ended_until)}`]
            .filter(Boolean)
            .join(" ")}
          <X size={14} aria-hidden />
        </Button>
      )}
      {isFiltered(search) && (
        <Button
          look="quiet"
          onClick={() => void navigate({ search: ({ run }: RunsSearch) => ({ run }), replace: true })}
        >
          <X size={14} aria-hidden /> Clear filters
        </Button>
      )}
    </search>
  );
}

export function AssistantFilter({
  value,
  onChange,
}: {
  /** Assistant ID. */
  value: string | undefined;
  onChange(value: string | undefined): void;
}) {
  const { data: assistants = [] } = useQuery(assistantsQuery);
  return (
    <Select
      aria-label="Assistant"
      value={value ?? ALL}
      options={[
        { value: ALL, label: "Any assistant" },
        ...assistants.map(({ assistant_id, name, graph_id }) => ({ value: assistant_id, label: name, hint: graph_id })),
      ]}
      onChange={(chosen) => onChange(chosen === ALL ? undefined : chosen)}
      className="w-48 max-sm:w-[calc(50%-4px)]"
    />
  );
}

/** Links between the pages on runs. */
export const RunsNav = () => (
  <nav aria-label="Pages on runs" className="flex shrink-0 gap-5 border-line border-b px-6 max-sm:px-4">
    {[
      { to: "/runs", label: "Runs" },
      { to: "/runs/monitoring", label: "Monitoring" },
    ].map(({ to, label }) => (
      <Link
        key={to}
        to={to}
        activeOptions={{ exact: true, includeSearch: false }}
        className="-mb-px rounded-t-sm border-b-2 py-2 font-medium text-table -outline-offset-2"
        activeProps={{ className: "border-accent-text text-text" }}
        inactiveProps={{ className: "border-transparent text-text-2 hover:text-text" }}
      >
        {label}
      </Link>
    ))}
  </nav>
);

const DAY_AND_TIME = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** Formats a time to the minute: `23 Nov, 10:20`. */
export const timeLabel = (time: string): string => DAY_AND_TIME.format(new Date(time));

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Formats the time of day: `10:20`. */
export const clock = (time: string): string => CLOCK.format(new Date(time));
