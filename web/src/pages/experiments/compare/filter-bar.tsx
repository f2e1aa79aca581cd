import { ArrowDownUp, Columns3, ListFilter, Rows2, Rows3, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "../../../frame/keys.ts";
import { Button } from "../../../ui/button.tsx";
import { classes } from "../../../ui/classes.ts";
import { Input } from "../../../ui/field.tsx";
import { count } from "../../../ui/format.ts";
import { Menu } from "../../../ui/menu.tsx";
import { Popover } from "../../../ui/popover.tsx";
import { type Chip, chipsOf, sortWords } from "./chips.ts";
import { columnsWithout } from "./columns.ts";
import { FilterForm } from "./filter-form.tsx";
import { isOrderOfChange } from "./order.ts";
import type { Search } from "./search.ts";
import { SortForm } from "./sort-form.tsx";
import type { View } from "./view.ts";

/** Letters that follow each other this quickly are one search, in ms. */
const TYPING_MS = 250;

/** What narrows the table, its order and its columns. */
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
  /** The experiment that filters and orders are about at first. */
  focused: string;
  total: number | undefined;
  onChange(patch: Partial<Search>, options?: { replace?: boolean }): void;
  actions: ReactNode;
}) {
  const chips = chipsOf(view, search);
  return (
    // With one filter all is on one line, so that the table does not move when a count is clicked.
    <div
      className={classes(
        "flex shrink-0 flex-wrap items-center gap-2 border-line border-b px-3 py-1.5",
        chips.length < 2 && "sm:flex-nowrap",
      )}
    >
      <Find text={search.text ?? ""} onChange={(text) => onChange({ text: text || undefined }, { replace: true })} />
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
      {chips.map(({ without, ...words }) => (
        <span
          key={`${words.about} ${words.said}`}
          title={`${words.about} · ${words.said}`}
          className="inline-flex h-8 min-w-0 max-w-80 items-center gap-1 rounded-md bg-selected pr-1 pl-2.5 text-accent-text text-table"
        >
          <Words {...words} />
          <Button
            look="quiet"
            small
            square
            aria-label={`Without the filter ${words.about} · ${words.said}`}
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
            <SortWords view={view} search={search} />
          </Button>
        }
      >
        <SortForm view={view} search={search} focused={focused} onChange={onChange} />
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
      <span role="status" className="ml-auto shrink-0 whitespace-nowrap font-mono text-table text-text-2">
        {total === undefined ? "" : `${count(total)} example${total === 1 ? "" : "s"}`}
      </span>
      {actions}
    </div>
  );
}

/** Of a long name the end is left out, of what is said about it nothing. */
const Words = ({ about, said }: Omit<Chip, "without">) => (
  <span className="flex min-w-0">
    <span className="truncate">{about}</span>
    <span className="max-w-56 shrink-0 truncate whitespace-pre"> · {said}</span>
  </span>
);

/** The order; where the filter beside it says what it is about, only which end comes first. */
function SortWords({ view, search }: { view: View; search: Search }) {
  const words = sortWords(view, search);
  if (!words) return <span className="max-sm:sr-only">Sort</span>;
  if (!isOrderOfChange(view, search)) return <Words {...words} />;
  const end = words.said.endsWith("worst first") ? "Worst first" : "Best first";
  return <span title={`${words.about} · ${words.said}`}>{end}</span>;
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
    <div className="w-44 shrink-0 max-sm:w-full">
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
        <Columns3 size={14} aria-hidden /> <span className="max-sm:sr-only">Columns</span>
      </Button>
    </Menu>
  );
}
