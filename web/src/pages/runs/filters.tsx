import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { Button } from "../../ui/button.tsx";
import { Input } from "../../ui/form/field.tsx";
import { Select } from "../../ui/form/select.tsx";
import { capitalized } from "../../ui/format.ts";
import { assistantsQuery } from "../agents/queries.ts";
import { type RunsSearch, runsRoute, STATUSES } from "./page.ts";

const ALL = "all";

const STATUS_OPTIONS = [
  { value: ALL, label: "Any status" },
  { value: "active", label: "Pending and running" },
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
  const { data: assistants = [] } = useQuery(assistantsQuery);
  const change = (changed: RunsSearch) =>
    void navigate({ search: (before: RunsSearch) => ({ ...before, ...changed }), replace: true });
  const { status, assistant, thread, since } = search;
  const isFiltered = status ?? assistant ?? thread ?? since;
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
      <Select
        aria-label="Assistant"
        value={assistant ?? ALL}
        options={[
          { value: ALL, label: "Any assistant" },
          ...assistants.map(({ assistant_id, name, graph_id }) => ({
            value: assistant_id,
            label: name,
            hint: graph_id,
          })),
        ]}
        onChange={(value) => change({ assistant: value === ALL ? undefined : value })}
        className="w-48 max-sm:w-[calc(50%-4px)]"
      />
      <Input
        aria-label="Thread"
        placeholder="Complete or partial thread ID"
        value={thread ?? ""}
        onChange={({ target }) => change({ thread: target.value.trim() || undefined })}
        className="!w-72 font-mono !text-table max-sm:!w-[calc(50%-4px)]"
      />
      {isFiltered && (
        <Button
          look="quiet"
          onClick={() => change({ status: undefined, assistant: undefined, thread: undefined, since: undefined })}
        >
          <X size={14} aria-hidden /> Clear filters
        </Button>
      )}
    </search>
  );
}
