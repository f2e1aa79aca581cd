import { ArrowDownUp, Columns3, ListFilter, Rows2, Rows3, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import { Input } from "../../../ui/field.tsx";
import { count } from "../../../ui/format.ts";
import { Menu } from "../../../ui/menu.tsx";
import { Popover } from "../../../ui/popover.tsx";
import { chipsOf, sortLabel } from "./chips.ts";
import { columnsWithout } from "./columns.ts";
import { FilterForm } from "./filter-form.tsx";
import type { Search } from "./search.ts";
import { SortForm } from "./sort-form.tsx";
import type { View } from "./view.ts";

/** Letters that follow each other this quickly are one search, in ms. */
const TYPING_MS = 250;

/** What narrows the table, its order and its columns. */
export function FilterBar({
  view,
  search,
  total,
  onChange,
  actions,
}: {
  view: View;
  search: Search;
  total: number | undefined;
  onChange(patch: Partial<Search>, options?: { replace?: boolean }): void;
  actions: ReactNode;
}) {
  const chips = chipsOf(view, search);
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-2 border-line border-b px-3 py-1.5">
      <Find text={search.text ?? ""} onChange={(text) => onChange({ text: text || undefined }, { replace: true })} />
      <Popover
        label="Filter"
        trigger={
          <Button>
            <ListFilter size={14} aria-hidden /> Filter
          </Button>
        }
      >
        <FilterForm view={view} search={search} onChange={onChange} />
      </Popover>
      {chips.map(({ label, without }) => (
        <span
          key={label}
          className="inline-flex h-8 max-w-80 items-center gap-1 rounded-md bg-selected pr-1 pl-2.5 text-accent-text text-table"
        >
          <span className="truncate">{label}</span>
          <Button
            look="quiet"
            small
            square
            aria-label={`Without the filter ${label}`}
            onClick={() => onChange(without)}
          >
            <X size={13} />
          </Button>
        </span>
      ))}
      <Popover
        label="Sort"
        trigger={
          <Button>
            <ArrowDownUp size={14} aria-hidden />
            <span className="max-w-56 truncate">{sortLabel(view, search)}</span>
          </Button>
        }
      >
        <SortForm view={view} search={search} onChange={onChange} />
      </Popover>
      <Columns view={view} search={search} onChange={onChange} />
      <Button
        square
        className="max-sm:hidden"
        aria-label={search.dense ? "Rows of two lines" : "Rows of one line"}
        onClick={() => onChange({ dense: search.dense ? undefined : true })}
      >
        {search.dense ? <Rows2 size={14} /> : <Rows3 size={14} />}
      </Button>
      <span role="status" className="ml-auto font-mono text-table text-text-2">
        {total === undefined ? "" : `${count(total)} example${total === 1 ? "" : "s"}`}
      </span>
      {actions}
    </div>
  );
}

/** The search for words. The address follows when nothing was typed for a moment. */
function Find({ text, onChange }: { text: string; onChange(text: string): void }) {
  const [typed, setTyped] = useState(text);
  const input = useRef<HTMLInputElement>(null);
  const told = useRef(text);
  if (told.current !== text) {
    // Somebody else changed it: a chip was closed, or the browser went back.
    told.current = text;
    if (typed !== text) setTyped(text);
  }
  useEffect(() => {
    if (typed === told.current) return;
    const timer = setTimeout(() => {
      told.current = typed;
      onChange(typed);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  });
  useKeys({ "/": { does: "Search the texts", run: () => input.current?.focus() } });
  return (
    <div className="w-56 max-sm:w-full">
      <Input
        ref={input}
        type="search"
        aria-label="Search inputs, outputs and errors"
        aria-keyshortcuts="/"
        placeholder="Search texts  /"
        value={typed}
        onChange={({ target }) => setTyped(target.value)}
        onKeyDown={(event) => event.key === "Escape" && input.current?.blur()}
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

/** Which columns are there, scores first. */
function Columns({ view, search, onChange }: { view: View; search: Search; onChange(patch: Partial<Search>): void }) {
  const without = columnsWithout(view, search);
  const all = [...view.keys.map(({ name }) => [`score:${name}`, name] as const), ...OTHER_COLUMNS];
  return (
    <Menu
      items={all.map(([id, label]) => ({
        label,
        checked: !without.includes(id),
        // Nothing is left out: that is not the same as not saying.
        onSelect: () =>
          onChange({
            without: (without.includes(id) ? without.filter((other) => other !== id) : [...without, id]).join(),
          }),
      }))}
    >
      <Button>
        <Columns3 size={14} aria-hidden /> Columns
      </Button>
    </Menu>
  );
}
