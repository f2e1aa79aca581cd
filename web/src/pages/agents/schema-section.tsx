import { useState } from "react";
import { JsonEditor } from "../../ui/form/json-editor.tsx";
import { fieldsOf, type JsonSchema } from "../../ui/form/json-schema.ts";
import { SchemaForm } from "../../ui/form/schema-form.tsx";
import { Segmented } from "../../ui/form/segmented.tsx";

type Value = Record<string, unknown>;

/** Edits a section of a configuration. Offers a form and JSON if the section has a schema with fields, and only JSON otherwise. */
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
  const [selected, setView] = useState<"form" | "json">();
  const view = selected ?? (hasForm ? "form" : "json");
  return (
    <section aria-label={title} className="grid gap-3 border-line border-t pt-4">
      <div className="flex items-start justify-between gap-4">
        <div>
          <h2 className="font-semibold text-body">{title}</h2>
          <p className="text-table text-text-3">{hint}</p>
        </div>
        {hasForm && (
          <Segmented<"form" | "json">
            label={`${title} format`}
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
        <JsonEditor isObject label={`${title} (JSON)`} value={value} onChange={(given) => onChange(given as Value)} />
      )}
    </section>
  );
}
