import { useState } from "react";
import { JsonEditor } from "../../ui/json-editor.tsx";
import { fieldsOf, type JsonSchema } from "../../ui/json-schema.ts";
import { SchemaForm } from "../../ui/schema-form.tsx";
import { Segmented } from "../../ui/segmented.tsx";

type Value = Record<string, unknown>;

/** A part of a configuration: a form where the graph has a schema for it, and always as JSON. */
export function SchemaSection({
  title,
  hint,
  schema,
  value,
  onChange,
}: {
  title: string;
  hint: string;
  schema: JsonSchema | null | undefined;
  value: Value;
  onChange(value: Value): void;
}) {
  const hasForm = fieldsOf(schema).length > 0;
  const [wanted, setView] = useState<"form" | "json">();
  const view = wanted ?? (hasForm ? "form" : "json");
  return (
    <section aria-label={title} className="grid gap-3 border-line border-t pt-4">
      <div className="flex items-start justify-between gap-4">
        <div>
          <h2 className="font-semibold text-body">{title}</h2>
          <p className="text-table text-text-3">{hint}</p>
        </div>
        {hasForm && (
          <Segmented<"form" | "json">
            label={`${title} as`}
            value={view}
            options={[
              { value: "form", label: "Form" },
              { value: "json", label: "JSON" },
            ]}
            onChange={setView}
          />
        )}
      </div>
      {view === "form" && schema ? (
        <SchemaForm schema={schema} value={value} onChange={onChange} />
      ) : (
        <JsonEditor isObject label={`${title} as JSON`} value={value} onChange={(given) => onChange(given as Value)} />
      )}
    </section>
  );
}
