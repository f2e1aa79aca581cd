import { type FormEvent, useState } from "react";
import { Button } from "../../../../ui/button.tsx";
import { Field, Input } from "../../../../ui/form/field.tsx";
import { type Option, Select } from "../../../../ui/form/select.tsx";
import type { Search } from "../search.ts";
import type { View } from "../view.ts";

interface FormProps {
  view: View;
  search: Search;
  /** ID of the experiment that is selected initially. */
  focused: string;
  onChange(patch: Partial<Search>): void;
}

type Direction = NonNullable<Search["change"]>;
type Kind = "change" | "range" | "failed" | "where";

const KINDS: readonly Option<Kind>[] = [
  { value: "change", label: "Better or worse than baseline" },
  { value: "range", label: "Score range" },
  { value: "failed", label: "Failed runs" },
  { value: "where", label: "Expression", hint: "Run metadata, latency or name" },
];

const CHANGES: readonly Option<Direction>[] = [
  { value: "worse", label: "Worse" },
  { value: "better", label: "Better" },
  { value: "changed", label: "Changed" },
];

export function FilterForm({ view, search, focused, onChange }: FormProps) {
  const { shown, keys } = view;
  const scored = keys.filter(({ distribution }) => distribution);
  const [kind, setKind] = useState<Kind>(shown.length > 1 ? "change" : "range");
  const [direction, setDirection] = useState<Direction>("worse");
  const [key, setKey] = useState(search.changeKey ?? search.sortKey ?? scored[0]?.name ?? "");
  const [chosen, setSession] = useState(focused);
  const [min, setMin] = useState("");
  const [max, setMax] = useState("");
  const [expression, setExpression] = useState(search.where ?? "");
  // The baseline cannot differ from itself.
  const sessions = kind === "change" ? shown.slice(1) : shown;
  const session = sessions.some(({ id }) => id === chosen) ? chosen : (sessions[0]?.id ?? "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (kind === "change") onChange({ change: direction, changeKey: key, changeIn: session });
    if (kind === "failed") onChange({ failed: session });
    if (kind === "where") onChange({ where: expression || undefined, whereIn: session });
    if (kind === "range") {
      const range = {
        in: session,
        key,
        ...(min !== "" && { min: Number(min) }),
        ...(max !== "" && { max: Number(max) }),
      };
      onChange({ ranges: [...(search.ranges ?? []), range] });
    }
  };
  return (
    <form onSubmit={submit} className="grid w-80 max-w-full gap-3">
      <Field label="Filter by">
        {({ id }) => <Select<Kind> id={id} value={kind} options={KINDS} onChange={setKind} />}
      </Field>
      {kind === "change" && (
        <Field label="Direction">
          {({ id }) => <Select<Direction> id={id} value={direction} options={CHANGES} onChange={setDirection} />}
        </Field>
      )}
      {(kind === "change" || kind === "range") && (
        <Field label="Score">
          {({ id }) => (
            <Select
              id={id}
              value={key}
              options={scored.map(({ name }) => ({ value: name, label: name }))}
              onChange={setKey}
            />
          )}
        </Field>
      )}
      {kind === "range" && (
        <div className="grid grid-cols-2 gap-3">
          <Field label="Min">
            {(props) => (
              <Input {...props} type="number" step="any" value={min} onChange={({ target }) => setMin(target.value)} />
            )}
          </Field>
          <Field label="Max">
            {(props) => (
              <Input {...props} type="number" step="any" value={max} onChange={({ target }) => setMax(target.value)} />
            )}
          </Field>
        </div>
      )}
      {kind === "where" && (
        <Field
          label="Expression"
          hint={'Examples: gt(latency, "5s"); and(eq(metadata_key, "model"), eq(metadata_value, "small"))'}
        >
          {(props) => (
            <Input
              {...props}
              className="font-mono"
              value={expression}
              onChange={({ target }) => setExpression(target.value)}
            />
          )}
        </Field>
      )}
      <Field label="Experiment">
        {({ id }) => (
          <Select
            id={id}
            value={session}
            options={sessions.map(({ id, name }) => ({ value: id, label: name }))}
            onChange={setSession}
          />
        )}
      </Field>
      <Button
        type="submit"
        look="primary"
        disabled={(kind === "range" && min === "" && max === "") || (kind === "change" && shown.length < 2)}
      >
        Apply filter
      </Button>
    </form>
  );
}
