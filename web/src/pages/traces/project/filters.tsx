import { ListFilter, X } from "lucide-react";
import { Button } from "../../../ui/button.tsx";
import { Field, Input } from "../../../ui/form/field.tsx";
import { Select } from "../../../ui/form/select.tsx";
import { useDebounced } from "../../../ui/form/use-debounced.ts";
import { capitalized } from "../../../ui/format.ts";
import { Popover } from "../../../ui/overlay/popover.tsx";
import { labelOfType, RUN_TYPES } from "../run-types.tsx";
import { isFiltered, type ProjectSearch, STATES } from "./search.ts";

const ANY = "any";
const ALL = "all";

/** Filters in the popover. `shown` is the text before the value of an active filter. */
const MORE = [
  { key: "name", label: "Name", hint: "Exact name of the run", shown: "name is" },
  { key: "tag", label: "Tag", hint: "Exact tag", shown: "tag" },
  { key: "metadata", label: "Metadata", hint: "key or key=value", shown: "metadata" },
  { key: "latency", label: "Latency in seconds", hint: "At least", shown: "latency ≥", unit: " s" },
  { key: "tokens", label: "Tokens", hint: "At least", shown: "tokens ≥" },
  { key: "thread", label: "Thread", hint: "Exact thread ID", shown: "thread" },
] as const satisfies readonly { key: keyof ProjectSearch; label: string; hint: string; shown: string; unit?: string }[];

export function Filters({ search, onChange }: { search: ProjectSearch; onChange(changed: ProjectSearch): void }) {
  const [text, setText] = useDebounced(search.q ?? "", (q) => onChange({ q: q.trim() || undefined }));
  // The URL may contain another run type, because clients can send any type.
  const types = [...new Set([...RUN_TYPES, ...(search.type && search.type !== ALL ? [search.type] : [])])];
  const active = MORE.filter(({ key }) => search[key] !== undefined);
  return (
    <search aria-label="Filters" className="flex flex-wrap items-center gap-2 px-6 py-2 max-sm:px-4">
      <Input
        type="search"
        aria-label="Search text"
        placeholder="Search names, errors, inputs, outputs"
        className="!w-72 max-sm:!w-full"
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      <Select
        aria-label="Runs"
        value={search.type ?? ANY}
        options={[
          { value: ANY, label: "Traces" },
          { value: ALL, label: "All runs" },
          ...types.map((type) => ({ value: type, label: `${labelOfType(type)} runs` })),
        ]}
        onChange={(type) => onChange({ type: type === ANY ? undefined : type })}
        className="w-36 max-sm:flex-1"
      />
      <Select
        aria-label="Status"
        value={search.status ?? ANY}
        options={[
          { value: ANY, label: "Any status" },
          ...STATES.map((state) => ({ value: state, label: capitalized(state) })),
        ]}
        onChange={(status) => onChange({ status: status === ANY ? undefined : status })}
        className="w-32 max-sm:flex-1"
      />
      <Popover
        label="More filters"
        trigger={
          <Button>
            <ListFilter size={14} aria-hidden /> Filter
          </Button>
        }
      >
        <div className="grid w-72 gap-3">
          {MORE.map((filter) => (
            <FilterField
              key={filter.key}
              label={filter.label}
              hint={filter.hint}
              value={String(search[filter.key] ?? "")}
              onChange={(value) => onChange({ [filter.key]: value || undefined })}
            />
          ))}
        </div>
      </Popover>
      {active.map(({ key, shown, ...filter }) => (
        <Button key={key} small onClick={() => onChange({ [key]: undefined })}>
          <span className="max-w-56 truncate">
            {shown} {String(search[key])}
            {"unit" in filter && filter.unit}
          </span>
          <span className="sr-only">(remove filter)</span>
          <X size={13} aria-hidden />
        </Button>
      ))}
      {isFiltered(search) && (
        <Button look="quiet" onClick={() => onChange(NO_FILTERS)}>
          <X size={14} aria-hidden /> Clear filters
        </Button>
      )}
    </search>
  );
}

const NO_FILTERS: ProjectSearch = {
  q: undefined,
  status: undefined,
  type: undefined,
  ...Object.fromEntries(MORE.map(({ key }) => [key, undefined])),
};

function FilterField({
  label,
  hint,
  value,
  onChange,
}: {
  label: string;
  hint: string;
  value: string;
  onChange(value: string): void;
}) {
  const [text, setText] = useDebounced(value, (written) => onChange(written.trim()));
  return (
    <Field label={label}>
      {(props) => <Input {...props} placeholder={hint} value={text} onChange={({ target }) => setText(target.value)} />}
    </Field>
  );
}
