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
  /** Units go here, once. */
  header: ReactNode;
  cell(row: Row, index: number): ReactNode;
  /** In pixels at first; people change it. 160 when it is left out. */
  width?: number;
  /** Takes what is left of the width. */
  grow?: boolean;
  /** Numbers stand right, in monospace. */
  numeric?: boolean;
  /** Stays at the left when the table scrolls; only the first columns may. */
  sticky?: boolean;
  /** The name that it is sorted by; undefined when it cannot be. */
  sort?: string;
  /** On narrow screens, where a row is a card: its title, beside the title, one of the first lines, or not there. */
  card?: "title" | "beside" | "first" | "hidden";
}

export interface Sort {
  by: string;
  descending: boolean;
}

const features = tableFeatures({ columnSizingFeature, columnResizingFeature });
const NO_ROWS: never[] = [];

/** Widths that people gave to the columns of a table, by its name. */
const storageOf = (name: string) => `threadmill.columns.${name}`;

function storedSizes(name: string): ColumnSizingState {
  try {
    return JSON.parse(localStorage.getItem(storageOf(name)) ?? "{}");
  } catch {
    return {};
  }
}

/** The columns with their widths, which are remembered in this browser. The library knows no rows: it sizes columns here. */
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
  // The same list as long as no width changes: rows compare it.
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
        /** Pixels from the left edge, for columns that stay there. */
        left: column.sticky ? offset : undefined,
        resize: header?.getResizeHandler(),
        /** By so many pixels, for the keyboard. */
        widen: (by: number) => onColumnSizingChange((sizes) => ({ ...sizes, [column.id]: Math.max(48, width + by) })),
        isResized: columnSizing[column.id] !== undefined,
      };
    });
  }, [columns, headers, columnSizing, onColumnSizingChange]);
}

export type SizedColumn<Row> = ReturnType<typeof useColumnWidths<Row>>[number];
