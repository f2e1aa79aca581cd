import { ArrowDownUp, Columns3, Grid3x3, ListFilter, Rows2, Rows3, X } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { useKeys } from "../../../../frame/keys.ts";
import { Button } from "../../../../ui/button.tsx";
import { Input, leaveOnEscape } from "../../../../ui/form/field.tsx";
import { useDebounced } from "../../../../ui/form/use-debounced.ts";
import { count } from "../../../../ui/format.ts";
import { classes } from "../../../../ui/layout.tsx";
import { Menu } from "../../../../ui/overlay/menu.tsx";
import { Popover } from "../../../../ui/overlay/popover.tsx";
import { PreviewPicker } from "../../preview-picker.tsx";
import { isOrderOfChange } from "../order.ts";
import { hiddenColumns } from "../rows/columns.ts";
import { joined, type Search } from "../search.ts";
import type { View } from "../view.ts";
import { type Chip, chipsOf, sortLabel } from "./chips.ts";
import { FilterForm } from "./filter-form.tsx";
import { SortForm } from "./sort-form.tsx";

export function FilterBar({
  view,
  search,
  focused,
  total,
  onChange,
  actions,
}: {
  view: View;
  search: Search;
  /** ID of the experiment that new filters and sort orders use by default. */
  focused: string;
  total: number | undefined;
  onChange(patch: Partial<Search>, options?: { replace?: boolean }): void;
  actions: ReactNode;
}) {
  const chips = chipsOf(view, search);
  return (
    // With at most one filter the bar stays on one line, so that the table does not move when a click on a count adds the filter.
    <div
      className={classes(
        "flex shrink-0 flex-wrap items-center gap-2 border-line border-b px-6 py-1.5 max-sm:px-4",
        chips.length < 2 && "sm:flex-nowrap",
      )}
    >
      <SearchInput
        text={search.text ?? ""}
        onChange={(text) => onChange({ text: text || undefined }, { replace: true })}
      />
      <Popover
        label="Filter"
        trigger={
          <Button>
            <ListFilter size={14} aria-hidden /> <span className="max-sm:sr-only">Filter</span>
          </Button>
        }
      >
        <FilterForm view={view} search={search} focused={focused} onChange={onChange} />
      </Popover>
      {chips.map(({ without, ...chip }) => (
        <span
          key={`${chip.experiment} ${chip.condition}`}
          title={`${chip.experiment} · ${chip.condition}`}
          className="inline-flex h-8 min-w-0 max-w-80 items-center gap-1 rounded-md bg-selected pr-1 pl-2.5 text-accent-text text-table"
        >
          <ChipText {...chip} />
          <Button
            look="quiet"
            small
            square
            aria-label={`Remove filter ${chip.experiment} · ${chip.condition}`}
            onClick={() => onChange(without)}
          >
            <X size={13} />
          </Button>
        </span>
      ))}
      <Popover
        label="Sort"
        trigger={
          <Button className="min-w-0 max-w-80">
            <ArrowDownUp size={14} aria-hidden className="shrink-0" />
            <SortLabel view={view} search={search} />
          </Button>
        }
      >
        <SortForm view={view} search={search} focused={focused} onChange={onChange} />
      </Popover>
      <Columns view={view} search={search} onChange={onChange} />
      <PreviewPicker dataset_id={view.dataset_id} />
      <Button
        square
        className="max-sm:hidden"
        aria-label={search.dense ? "Two-line rows" : "One-line rows"}
        onClick={() => onChange({ dense: search.dense ? undefined : true })}
      >
        {search.dense ? <Rows2 size={14} /> : <Rows3 size={14} />}
      </Button>
      <Button
        square
        aria-label="Heat map"
        title="Color each score on a scale from the worst to the best score for the same feedback key"
        aria-pressed={search.heat === true}
        onClick={() => onChange({ heat: search.heat ? undefined : true })}
      >
        <Grid3x3 size={14} className={search.heat ? "text-accent-text" : undefined} />
      </Button>
      <span role="status" className="ml-auto shrink-0 whitespace-nowrap font-mono text-table text-text-2">
        {total === undefined ? "" : `${count(total)} example${total === 1 ? "" : "s"}`}
      </span>
      {actions}
    </div>
  );
}

/** Truncates the experiment's name. The condition is truncated only if it is wider than 14 rem. */
const ChipText = ({ experiment, condition }: Omit<Chip, "without">) => (
  <span className="flex min-w-0">
    <span className="truncate">{experiment}</span>
    <span className="max-w-56 shrink-0 truncate whitespace-pre"> · {condition}</span>
  </span>
);

/** Shows the sort order. If a filter already shows the same experiment and key, only the direction is shown. */
function SortLabel({ view, search }: { view: View; search: Search }) {
  const label = sortLabel(view, search);
  if (!label) return <span className="max-sm:sr-only">Sort</span>;
  if (!isOrderOfChange(view, search)) return <ChipText {...label} />;
  const end = label.condition.endsWith("worst first") ? "Worst first" : "Best first";
  return <span title={`${label.experiment} · ${label.condition}`}>{end}</span>;
}

function SearchInput({ text, onChange }: { text: string; onChange(text: string): void }) {
  const [typed, setTyped] = useDebounced(text, onChange);
  const input = useRef<HTMLInputElement>(null);
  useKeys({ "/": { does: "Search", run: () => input.current?.focus() } });
  return (
    <div className="w-44 shrink-0 max-sm:w-full">
      <Input
        ref={input}
        type="search"
        aria-label="Search inputs, outputs and errors"
        aria-keyshortcuts="/"
        placeholder="Search  /"
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
        onKeyDown={leaveOnEscape}
      />
    </div>
  );
}

const OTHER_COLUMNS = [
  ["latency", "Latency"],
  ["output", "Output"],
  ["input", "Input"],
  ["expected", "Expected"],
] as const;

function Columns({ view, search, onChange }: { view: View; search: Search; onChange(patch: Partial<Search>): void }) {
  const without = hiddenColumns(view, search);
  const all = [...view.keys.map(({ name }) => [`score:${name}`, name] as const), ...OTHER_COLUMNS];
  return (
    <Menu
      items={all.map(([id, label]) => ({
        label,
        checked: !without.includes(id),
        // `without` in the URL lists the hidden columns. If it is empty, all columns are shown; if it is missing, the default columns.
        onSelect: () =>
          onChange({
            without: joined(without.includes(id) ? without.filter((other) => other !== id) : [...without, id]) ?? "",
          }),
      }))}
    >
      <Button>
        <Columns3 size={14} aria-hidden /> <span className="max-sm:sr-only">Columns</span>
      </Button>
    </Menu>
  );
}
