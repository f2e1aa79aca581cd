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
  /** Column title, including the unit. */
  header: ReactNode;
  cell(row: Row, index: number): ReactNode;
  /** Initial width in pixels. Default: 160. */
  width?: number;
  /** Whether the column takes the remaining width until the user resizes it. */
  grow?: boolean;
  /** Whether the cells are right-aligned and monospaced. */
  numeric?: boolean;
  /** Whether the column stays at the left while the table scrolls. Only for the first columns. */
  sticky?: boolean;
  /** Sort key. Undefined if the column cannot be sorted. */
  sort?: string;
  /** Position in a card on narrow screens: the title, beside the title, in one of the first lines, or hidden. */
  card?: "title" | "beside" | "first" | "hidden";
}

export interface Sort {
  by: string;
  descending: boolean;
}

const features = tableFeatures({ columnSizingFeature, columnResizingFeature });
const NO_ROWS: never[] = [];

/** Returns the local storage key of a table's column widths. */
const storageOf = (name: string) => `threadmill.columns.${name}`;

function storedSizes(name: string): ColumnSizingState {
  try {
    return JSON.parse(localStorage.getItem(storageOf(name)) ?? "{}");
  } catch {
    return {};
  }
}

/** Returns the columns with their widths, which are stored in the browser. TanStack Table is used only for column sizing, without rows. */
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
  // The array changes only with the columns and their widths, because memoized rows compare the array.
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
        /** Offset of a sticky column from the left edge, in pixels. */
        left: column.sticky ? offset : undefined,
        resize: header?.getResizeHandler(),
        /** Changes the width by a number of pixels. Used by the keyboard shortcuts. */
        widen: (by: number) => onColumnSizingChange((sizes) => ({ ...sizes, [column.id]: Math.max(48, width + by) })),
        isResized: columnSizing[column.id] !== undefined,
      };
    });
  }, [columns, headers, columnSizing, onColumnSizingChange]);
}

export type SizedColumn<Row> = ReturnType<typeof useColumnWidths<Row>>[number];
