import { Field } from "../../../../ui/form/field.tsx";
import { Segmented } from "../../../../ui/form/segmented.tsx";
import { Select } from "../../../../ui/form/select.tsx";
import { NO_ORDER, type Order, orderOf, orderPatch } from "../order.ts";
import type { Search } from "../search.ts";
import type { View } from "../view.ts";

const ORDERS = [
  { value: "dataset", label: "Dataset order" },
  { value: "score delta", label: "Score difference from baseline" },
  { value: "score", label: "Score" },
  { value: "latency delta", label: "Latency difference from baseline" },
  { value: "latency", label: "Latency" },
] as const;
type Kind = (typeof ORDERS)[number]["value"];

const ENDS = [
  { value: "worst", label: "Worst first" },
  { value: "best", label: "Best first" },
] as const;

/**
 * Edits the table's sort order. Changes apply immediately.
 *
 * @param focused ID of the experiment that is selected initially
 */
export function SortForm({
  view,
  search,
  focused,
  onChange,
}: {
  view: View;
  search: Search;
  focused: string;
  onChange(patch: Partial<Search>): void;
}) {
  const { shown, keys } = view;
  const [baseline] = shown;
  const scored = keys.filter(({ distribution }) => distribution);
  const order = orderOf(view, search);
  const kind: Kind = order ? `${order.by}${order.delta ? " delta" : ""}` : "dataset";
  // The baseline cannot differ from itself.
  const others = order?.delta ? shown.slice(1) : shown;
  const change = (patch: Partial<Order>) => order && onChange(orderPatch(view, { ...order, ...patch }));
  const choose = (chosen: Kind) => {
    if (chosen === "dataset") return onChange(NO_ORDER);
    const [by, word] = chosen.split(" ") as ["score" | "latency", string | undefined];
    const delta = word !== undefined;
    const preferred = order?.session_id ?? focused;
    const session_id = delta && preferred === baseline?.id ? shown[1]?.id : preferred;
    const key = by === "score" ? (order?.key ?? search.changeKey ?? scored[0]?.name) : undefined;
    if (session_id !== undefined)
      onChange(orderPatch(view, { by, key, session_id, delta, worstFirst: order?.worstFirst ?? true }));
  };
  return (
    <div className="grid w-80 max-w-full gap-3">
      <Field label="Sort by">
        {({ id }) => (
          <Select
            id={id}
            value={kind}
            options={shown.length > 1 ? ORDERS : ORDERS.filter(({ value }) => !value.endsWith("delta"))}
            onChange={choose}
          />
        )}
      </Field>
      {order?.by === "score" && (
        <Field label="Score">
          {({ id }) => (
            <Select
              id={id}
              value={order.key}
              options={scored.map(({ name }) => ({ value: name, label: name }))}
              onChange={(key) => change({ key })}
            />
          )}
        </Field>
      )}
      {order && (
        <>
          <Field label="Experiment">
            {({ id }) => (
              <Select
                id={id}
                value={order.session_id}
                options={others.map(({ id, name }) => ({ value: id, label: name }))}
                onChange={(session_id) => change({ session_id })}
              />
            )}
          </Field>
          <div>
            <Segmented
              label="Order"
              value={order.worstFirst ? "worst" : "best"}
              options={ENDS}
              onChange={(end) => change({ worstFirst: end === "worst" })}
            />
          </div>
        </>
      )}
    </div>
  );
}
