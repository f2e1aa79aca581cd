import { Checkbox, Field } from "../../../ui/field.tsx";
import { Select } from "../../../ui/select.tsx";
import type { Search } from "./search.ts";
import type { View } from "./view.ts";

const ORDERS = [
  { value: "dataset", label: "The order of the dataset" },
  { value: "score delta", label: "Difference of a score to the baseline" },
  { value: "score", label: "A score" },
  { value: "latency delta", label: "Difference of the latency to the baseline" },
  { value: "latency", label: "The latency" },
] as const;
type Order = (typeof ORDERS)[number]["value"];

/** What the table is sorted by. Each choice is seen at once. */
export function SortForm({
  view,
  search,
  onChange,
}: {
  view: View;
  search: Search;
  onChange(patch: Partial<Search>): void;
}) {
  const { shown, keys } = view;
  const scored = keys.filter(({ distribution }) => distribution);
  const order: Order = search.sort ? `${search.sort}${search.delta ? " delta" : ""}` : "dataset";
  const choose = (chosen: Order) => {
    if (chosen === "dataset")
      return onChange({
        sort: undefined,
        sortKey: undefined,
        sortIn: undefined,
        delta: undefined,
        ascending: undefined,
      });
    const [sort, delta] = chosen.split(" ") as ["score" | "latency", string | undefined];
    onChange({
      sort,
      delta: delta !== undefined || undefined,
      sortKey: sort === "score" ? (search.sortKey ?? scored[0]?.name) : undefined,
      sortIn: search.sortIn ?? (shown[1] ?? shown[0])?.id,
    });
  };
  return (
    <div className="grid w-80 max-w-full gap-3">
      <Field label="Sort by">{({ id }) => <Select id={id} value={order} options={ORDERS} onChange={choose} />}</Field>
      {search.sort === "score" && (
        <Field label="Score">
          {({ id }) => (
            <Select
              id={id}
              value={search.sortKey}
              options={scored.map(({ name }) => ({ value: name, label: name }))}
              onChange={(sortKey) => onChange({ sortKey })}
            />
          )}
        </Field>
      )}
      {search.sort && (
        <>
          <Field label="In the experiment">
            {({ id }) => (
              <Select
                id={id}
                value={search.sortIn}
                options={shown.map(({ id, name }) => ({ value: id, label: name }))}
                onChange={(sortIn) => onChange({ sortIn })}
              />
            )}
          </Field>
          <Checkbox
            label="Lowest first"
            checked={search.ascending ?? false}
            onChange={({ target }) => onChange({ ascending: target.checked || undefined })}
          />
        </>
      )}
    </div>
  );
}
