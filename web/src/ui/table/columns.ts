import {
  type ColumnSizingState,
  columnResizingFeature,
  columnSizingFeature,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { type ReactNode, useCallback, useMemo, useState } from "react";

export interface Column<Row> {
  id: string;
  /** The header contains the unit. */
  header: ReactNode;
  cell(row: Row, index: number): ReactNode;
  /** The initial width in pixels. Default: 160. */
  width?: number;
  /** Takes the remaining width. */
  grow?: boolean;
  /** Right-aligned, in monospace. */
  numeric?: boolean;
  /** Stays at the left when the table scrolls. For the first columns only. */
  sticky?: boolean;
  /** The sort key; undefined if the column cannot be sorted. */
  sort?: string;
  /** The place in a card on narrow screens: the title, beside the title, one of the first lines, or hidden. */
  card?: "title" | "beside" | "first" | "hidden";
}

export interface Sort {
  by: string;
  descending: boolean;
}

const features = tableFeatures({ columnSizingFeature, columnResizingFeature });
const NO_ROWS: never[] = [];

/** The local storage key of the column widths of a table. */
const storageOf = (name: string) => `threadmill.columns.${name}`;

function storedSizes(name: string): ColumnSizingState {
  try {
    return JSON.parse(localStorage.getItem(storageOf(name)) ?? "{}");
  } catch {
    return {};
  }
}

/** The columns with their widths, which are stored in the browser. The library is used for column sizing only, without rows. */
export function useColumnWidths<Row>(name: string, columns: readonly Column<Row>[]) {
  const [columnSizing, setSizes] = useState(() => storedSizes(name));
  const onColumnSizingChange = useCallback(
    (change: ColumnSizingState | ((sizes: ColumnSizingState) => ColumnSizingState)) =>
      setSizes((sizes) => {
        const changed = typeof change === "function" ? change(sizes) : change;
        localStorage.setItem(storageOf(name), JSON.stringify(changed));
        return changed;
      }),
    [name],
  );
  const definitions = useMemo(
    () => columns.map(({ id, width = 160 }) => ({ id, size: width, minSize: 48, maxSize: 1_200 })),
    [columns],
  );
  const table = useTable({
    features,
    columns: definitions,
    data: NO_ROWS,
    columnResizeMode: "onChange",
    state: { columnSizing },
    onColumnSizingChange,
  });
  const headers = table.getHeaderGroups()[0]?.headers;
  // The list keeps its identity until a width changes: memoized rows compare it.
  return useMemo(() => {
    let left = 0;
    return columns.map((column, index) => {
      const header = headers?.[index];
      const width = columnSizing[column.id] ?? header?.getSize() ?? column.width ?? 160;
      const offset = left;
      if (column.sticky) left += width;
      return {
        column,
        width,
        /** The offset of a sticky column from the left edge, in pixels. */
        left: column.sticky ? offset : undefined,
        resize: header?.getResizeHandler(),
        /** Changes the width by a number of pixels, for the keyboard. */
        widen: (by: number) => onColumnSizingChange((sizes) => ({ ...sizes, [column.id]: Math.max(48, width + by) })),
        isResized: columnSizing[column.id] !== undefined,
      };
    });
  }, [columns, headers, columnSizing, onColumnSizingChange]);
}

export type SizedColumn<Row> = ReturnType<typeof useColumnWidths<Row>>[number];
