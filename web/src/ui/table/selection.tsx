import type { Column } from "./columns.ts";

export interface Selection<Row> {
  chosen: ReadonlySet<string>;
  choose(keys: readonly string[]): void;
  /** Rows of the table, in its order. */
  rows: readonly Row[];
  keyOf(row: Row): string;
  nameOf(row: Row): string;
  /** Maximum number of selected rows, and the reason for the limit, which is shown when it is reached. */
  limit?: { max: number; reason: string };
}

/** Column with a checkbox for each row. The checkbox in the header selects all rows up to the limit, or clears the selection. */
export function selectionColumn<Row>(selection: Selection<Row>): Column<Row> {
  const { chosen, choose, keyOf, nameOf, limit } = selection;
  return {
    id: "chosen",
    header: <SelectAll {...selection} />,
    cell: (row) => {
      const key = keyOf(row);
      const isFull = !chosen.has(key) && chosen.size >= (limit?.max ?? Number.POSITIVE_INFINITY);
      return (
        <input
          type="checkbox"
          aria-label={`Select ${nameOf(row)}`}
          title={isFull ? limit?.reason : undefined}
          className="block size-3.5 accent-accent"
          checked={chosen.has(key)}
          disabled={isFull}
          onChange={() => choose(toggled(chosen, key))}
        />
      );
    },
    width: 52,
    sticky: true,
    card: "beside",
  };
}

/** Adds a key to a selection, or removes it. */
export const toggled = (chosen: ReadonlySet<string>, key: string): string[] =>
  chosen.has(key) ? [...chosen].filter((each) => each !== key) : [...chosen, key];

function SelectAll<Row>({ rows, keyOf, chosen, choose, limit }: Selection<Row>) {
  const selectable = rows.slice(0, limit?.max).map(keyOf);
  const isChosen = selectable.length > 0 && selectable.every((key) => chosen.has(key));
  const label = selectable.length < rows.length ? `Select the first ${selectable.length}` : "Select all";
  return (
    <input
      type="checkbox"
      aria-label={label}
      title={label}
      className="block size-3.5 accent-accent"
      checked={isChosen}
      onChange={() => choose(isChosen ? [] : selectable)}
    />
  );
}
