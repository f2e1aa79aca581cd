import { useMemo } from "react";
import { classes } from "../../../ui/classes.ts";
import { isNarrow, useMedia } from "../../../ui/media.ts";
import { EmptyState, ErrorState, SkeletonRows } from "../../../ui/states.tsx";
import { Table } from "../../../ui/table.tsx";
import type { Column } from "../../../ui/table-columns.ts";
import { columnsWithout, keysShown } from "./columns.ts";
import { type CellParts, ExampleText, RowCell, SCORE_PX } from "./row-cell.tsx";
import type { Search } from "./search.ts";
import type { Slot } from "./slots.ts";
import type { Rows } from "./use-rows.ts";
import type { View } from "./view.ts";

const keyOf = ({ index, row }: Slot): string => row?.example_id ?? `place ${index}`;

/** The examples side by side. Rows are fetched as they are scrolled to. */
export function RowsTable({
  view,
  search,
  rows,
  focused,
  selected,
  onSelect,
  onOpen,
}: {
  view: View;
  search: Search;
  rows: Rows;
  focused: string;
  selected: string | undefined;
  onSelect(slot: Slot): void;
  onOpen(slot: Slot): void;
}) {
  const narrow = useMedia(isNarrow);
  const { without, dense = false } = search;
  const { shown, keys } = view;
  const shape = JSON.stringify([shown.map(({ id }) => id), keys, without, dense, focused, narrow]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the view is another object each time; the shape says whether its columns changed
  const columns = useMemo(() => columnsOf(view, search, focused, narrow), [shape]);
  if (rows.error) return <ErrorState error={rows.error} retry={rows.retry} />;
  if (!rows.slots) return <SkeletonRows label="Fetching the examples" rows={12} height={dense ? 32 : 56} />;
  return (
    <Table
      name="Examples side by side"
      rows={rows.slots}
      columns={columns}
      rowHeight={dense ? 32 : 56}
      headHeight={56}
      keyOf={keyOf}
      selected={selected}
      onSelect={(_, slot) => onSelect(slot)}
      onOpen={onOpen}
      onRange={rows.onRange}
      className={classes("flex-1", rows.isOld && "opacity-60")}
      empty={
        <EmptyState title="No example is like that">
          None of the examples that these experiments ran meets all of the filters.
        </EmptyState>
      }
    />
  );
}

function columnsOf(view: View, search: Search, focused: string, narrow: boolean): Column<Slot>[] {
  const without = columnsWithout(view, search);
  const hides = (name: string) => without.includes(name);
  const keys = keysShown(view, search);
  const parts: CellParts = {
    keys,
    latency: !hides("latency"),
    output: !hides("output"),
    dense: search.dense === true && !narrow,
    named: narrow,
  };
  const scores_px = (keys.length + (parts.latency ? 1 : 0)) * SCORE_PX;
  const texts = [
    { id: "input", header: "Input", of: "inputs_preview" },
    { id: "expected", header: "Expected", of: "expected_preview" },
  ] as const;
  return [
    {
      id: "number",
      header: "#",
      cell: ({ index, row }) => <span className="text-text-3">{row?.number ?? index + 1}</span>,
      width: 56,
      numeric: true,
      sticky: true,
      card: "hidden",
    },
    ...texts
      .filter(({ id }) => !hides(id))
      .map(
        ({ id, header, of }): Column<Slot> => ({
          id,
          header,
          cell: ({ row }) => <ExampleText row={row} of={of} />,
          width: id === "input" ? 210 : 160,
          sticky: id === "input",
          card: id === "input" ? "title" : undefined,
        }),
      ),
    ...view.shown.map(
      ({ id, name }, index): Column<Slot> => ({
        id: `experiment ${index}`,
        header: narrow ? name : <Head name={name} isBaseline={index === 0} isFocused={id === focused} parts={parts} />,
        cell: (slot) => <RowCell slot={slot} index={index} parts={parts} />,
        width: parts.output && !parts.dense ? Math.max(220, scores_px + 24) : scores_px + (parts.output ? 200 : 24),
        card: "first",
      }),
    ),
  ];
}

/** The name of an experiment over those of its scores. */
const Head = ({
  name,
  isBaseline,
  isFocused,
  parts: { keys, latency },
}: {
  name: string;
  isBaseline: boolean;
  isFocused: boolean;
  parts: CellParts;
}) => (
  <span className="block">
    <span className={classes("block truncate", isFocused ? "text-accent-text" : "text-text")}>
      {name}
      {isBaseline && <span className="font-normal text-text-3"> (baseline)</span>}
    </span>
    <span className="flex font-normal text-text-3">
      {[...keys.map((key) => key.name), ...(latency ? ["latency"] : [])].map((score) => (
        <span key={score} title={score} style={{ width: SCORE_PX }} className="shrink-0 truncate pr-2">
          {score}
        </span>
      ))}
    </span>
  </span>
);
