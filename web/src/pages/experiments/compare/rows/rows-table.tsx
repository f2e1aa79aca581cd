import { ArrowDown, ArrowUp } from "lucide-react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { HueDot } from "../../../../ui/hue-dot.tsx";
import { classes, isNarrow, useMedia } from "../../../../ui/layout.tsx";
import { EmptyState, ErrorState, SkeletonRows } from "../../../../ui/states.tsx";
import type { Column } from "../../../../ui/table/columns.ts";
import { Table } from "../../../../ui/table/table.tsx";
import { NO_ORDER, nextOrder, orderOf } from "../order.ts";
import type { Search } from "../search.ts";
import type { View } from "../view.ts";
import { hiddenColumns, visibleKeys } from "./columns.ts";
import { type CellParts, ExampleText, RowCell, SCORE_PX, scorePx } from "./row-cell.tsx";
import type { Slot } from "./slots.ts";
import type { Rows } from "./use-rows.ts";

const keyOf = ({ index, row }: Slot): string => row?.example_id ?? `row ${index}`;

export function RowsTable({
  view,
  search,
  rows,
  focused,
  selected,
  onSelect,
  onOpen,
  onChange,
  onWidths,
  scroller,
}: {
  scroller: HTMLElement | null | undefined;
  view: View;
  search: Search;
  rows: Rows;
  focused: string;
  selected: string | undefined;
  onSelect(slot: Slot): void;
  onOpen(slot: Slot): void;
  onChange(patch: Partial<Search>): void;
  /** Called with the widths of the texts and of each experiment if all columns are visible at once, or else with undefined. */
  onWidths(widths: readonly number[] | undefined): void;
}) {
  const narrow = useMedia(isNarrow);
  const { without, dense = false, heat, sort, sortKey, sortIn, delta, ascending } = search;
  const { shown, keys } = view;
  const [box, setBox] = useState<HTMLElement | null>(null);
  const width = useWidth(box);
  const columns_key = JSON.stringify([
    width,
    shown.map(({ id }) => id),
    keys,
    without,
    dense,
    heat,
    focused,
    narrow,
    sort,
    sortKey,
    sortIn,
    delta,
    ascending,
  ]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: columns_key changes only with the columns; view also changes with other data
  const columns = useMemo(() => columnsOf({ view, search, focused, narrow, width, onChange }), [columns_key]);
  const report = useCallback(
    (widths: readonly number[]) => {
      const texts = widths.slice(0, -shown.length).reduce((sum, each) => sum + each, 0);
      const all = widths.reduce((sum, each) => sum + each, 0);
      onWidths(all <= width ? [texts, ...widths.slice(-shown.length)] : undefined);
    },
    [shown.length, width, onWidths],
  );
  if (rows.error) return <ErrorState error={rows.error} retry={rows.retry} />;
  if (!rows.slots) return <SkeletonRows label="Loading examples" rows={12} height={dense ? 32 : 56} />;
  return (
    <div ref={setBox} className="flex min-h-0 flex-1 flex-col">
      <Table
        name="Examples"
        rows={rows.slots}
        columns={columns}
        rowHeight={dense ? 32 : 56}
        headHeight={56}
        keyOf={keyOf}
        selected={selected}
        onSelect={(_, slot) => onSelect(slot)}
        onOpen={onOpen}
        onRange={rows.onRange}
        onWidths={report}
        scroller={scroller}
        // Not translucent: the earlier rows stay readable until the others are there.
        className={classes("flex-1", rows.isPlaceholder && "cursor-progress bg-hover")}
        empty={<EmptyState title="No examples match">Change the filters to see other examples.</EmptyState>}
      />
    </div>
  );
}

/** Width from which the columns have the complete names of the scores, even if the table then scrolls sideways. */
const ROOMY_PX = 1_400;

/** Returns the width of an element in steps of 20 pixels, so that resizing the window rarely changes the columns. */
function useWidth(element: HTMLElement | null): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth / 20) * 20));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

const SCROLLBAR_PX = 16;
const NUMBER_PX = 68;
const TEXT_WIDTHS = { input: { width: 210, min_px: 140 }, expected: { width: 160, min_px: 110 } };
const TEXTS_PX = TEXT_WIDTHS.input.min_px + TEXT_WIDTHS.expected.min_px;

/** A column whose width may shrink to `min_px`, so that the table does not scroll sideways. */
type FlexibleColumn = Column<Slot> & { width: number; min_px: number };

/** Divides the space that the columns leave between the texts and the experiments, or takes the missing space from them. */
function fitWidth(columns: readonly FlexibleColumn[], width: number): Column<Slot>[] {
  const sum = (pixelsOf: (column: FlexibleColumn) => number) =>
    columns.reduce((total, each) => total + pixelsOf(each), 0);
  const extra = width - SCROLLBAR_PX - sum((column) => column.width);
  const each = Math.floor(extra / (columns.length - 1));
  const slack = sum((column) => column.width - column.min_px);
  // A table that would scroll anyway keeps its widths.
  const share = -extra > slack ? 0 : -extra / Math.max(1, slack);
  return columns.map((column) => {
    if (column.id === "number") return column;
    const change = extra > 0 ? each : -Math.ceil((column.width - column.min_px) * share);
    return { ...column, width: column.width + change };
  });
}

function columnsOf({
  view,
  search,
  focused,
  narrow,
  width,
  onChange,
}: {
  view: View;
  search: Search;
  focused: string;
  narrow: boolean;
  width: number;
  onChange: (patch: Partial<Search>) => void;
}): Column<Slot>[] {
  const without = hiddenColumns(view, search);
  const hides = (name: string) => without.includes(name);
  const keys = visibleKeys(view, search);
  const latency = !hides("latency");
  const scoresPx = (index: number, isRoomy: boolean) =>
    24 + keys.reduce((sum, key) => sum + scorePx(key, index, isRoomy), latency ? SCORE_PX : 0);
  const roomy_px = view.shown.reduce((sum, _, index) => sum + scoresPx(index, true), NUMBER_PX + TEXTS_PX);
  const parts: CellParts = {
    keys,
    latency,
    output: !hides("output"),
    dense: search.dense === true && !narrow,
    heat: search.heat === true,
    named: narrow,
    isRoomy: width >= Math.min(ROOMY_PX, roomy_px + SCROLLBAR_PX),
  };
  const widthOf = (index: number) => {
    const scores_px = scoresPx(index, parts.isRoomy);
    if (!parts.output) return { width: scores_px, min_px: scores_px };
    return parts.dense
      ? { width: scores_px + 176, min_px: scores_px + 56 }
      : { width: Math.max(220, scores_px), min_px: Math.max(160, scores_px) };
  };
  const texts = [
    { id: "input", header: "Input", of: "inputs_preview" },
    { id: "expected", header: "Expected", of: "expected_preview" },
  ] as const;
  const columns: FlexibleColumn[] = [
    {
      id: "number",
      header: (
        <button type="button" title="Dataset order" className={SORT_BUTTON} onClick={() => onChange(NO_ORDER)}>
          #
        </button>
      ),
      cell: ({ index, row }) => <span className="text-text-3">{row?.number ?? index + 1}</span>,
      width: NUMBER_PX,
      min_px: NUMBER_PX,
      numeric: true,
      sticky: true,
      card: "hidden",
    },
    ...texts
      .filter(({ id }) => !hides(id))
      .map(
        ({ id, header, of }): FlexibleColumn => ({
          id,
          header,
          cell: ({ row }) => (
            <ExampleText row={row} of={of} dense={parts.dense} isNumbered={narrow && id === "input"} />
          ),
          ...TEXT_WIDTHS[id],
          sticky: id === "input",
          card: id === "input" ? "title" : undefined,
        }),
      ),
    ...view.shown.map(
      ({ id, name }, index): FlexibleColumn => ({
        id: `experiment ${index}`,
        header: narrow ? (
          <>
            <HueDot name={name} />
            {name}
          </>
        ) : (
          <Head
            view={view}
            search={search}
            index={index}
            isFocused={id === focused}
            parts={parts}
            onChange={onChange}
          />
        ),
        cell: (slot) => <RowCell slot={slot} index={index} parts={parts} />,
        ...widthOf(index),
        card: "first",
      }),
    ),
  ];
  return narrow || width === 0 ? columns : fitWidth(columns, width);
}

const SORT_BUTTON = "rounded hover:text-text hover:underline";

/** Header of an experiment column: its name and its score keys. A click on a key sorts by the key. */
function Head({
  view,
  search,
  index,
  isFocused,
  parts: { keys, latency, isRoomy },
  onChange,
}: {
  view: View;
  search: Search;
  index: number;
  isFocused: boolean;
  parts: CellParts;
  onChange(patch: Partial<Search>): void;
}) {
  const { id, name } = view.shown[index] as View["shown"][number];
  const order = orderOf(view, search);
  return (
    <span className="block">
      <span className={classes("block truncate", isFocused ? "text-accent-text" : "text-text")}>
        <HueDot name={name} />
        {name}
        {index === 0 && <span className="font-normal text-text-3"> (baseline)</span>}
      </span>
      <span className="flex font-normal text-text-3">
        {keys.map((key) => {
          const isSortable = key.distribution !== undefined;
          const isSorted = order?.by === "score" && order.key === key.name && order.session_id === id;
          return (
            <span
              key={key.name}
              style={{ width: scorePx(key, index, isRoomy) }}
              className="flex shrink-0 items-center pr-2"
            >
              {isSortable ? (
                <button
                  type="button"
                  title={`Sort by ${key.name}${index === 0 ? "" : " difference from baseline"}, worst first`}
                  className={classes(SORT_BUTTON, "min-w-0 truncate")}
                  onClick={() => onChange(nextOrder(view, search, key.name, id))}
                >
                  {key.name}
                  <span className="sr-only"> in {name}</span>
                </button>
              ) : (
                <span className="truncate">{key.name}</span>
              )}
              {isSorted && <SortedBy worstFirst={order.worstFirst} ascending={search.ascending ?? false} />}
            </span>
          );
        })}
        {latency && <span style={{ width: SCORE_PX }}>latency</span>}
      </span>
    </span>
  );
}

const SortedBy = ({ worstFirst, ascending }: { worstFirst: boolean; ascending: boolean }) => {
  const Icon = ascending ? ArrowUp : ArrowDown;
  return (
    <Icon
      role="img"
      size={12}
      className="ml-0.5 shrink-0 text-text"
      aria-label={worstFirst ? "worst first" : "best first"}
    />
  );
};
