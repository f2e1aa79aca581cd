import { Checkbox, Field, Input, TextArea } from "./field.tsx";
import { JsonEditor } from "./json-editor.tsx";
import { allowsText, fieldsOf, type JsonSchema, kindOf, resolve } from "./json-schema.ts";
import { Select } from "./select.tsx";

type Value = Record<string, unknown>;

/** Objects below this depth are edited as JSON, because recursive types have unlimited depth. */
const MAX_DEPTH = 3;

/** A form for an object with a JSON Schema. Empty fields are omitted from the object. Keys that are not in the schema are kept. */
export function SchemaForm({
  schema,
  value,
  onChange,
  root = schema,
  depth = 0,
}: {
  schema: JsonSchema;
  value: Value;
  onChange(value: Value): void;
  root?: JsonSchema;
  depth?: number;
}) {
  const { required = [] } = resolve(schema, root);
  const change = (name: string) => (given: unknown) => {
    const { [name]: _, ...others } = value;
    onChange(given === undefined ? others : { ...others, [name]: given });
  };
  return (
    <div className="grid gap-3">
      {fieldsOf(resolve(schema, root)).map(([name, field]) => (
        <SchemaField
          key={name}
          name={name}
          schema={resolve(field, root)}
          root={root}
          depth={depth}
          required={required.includes(name)}
          value={value[name]}
          onChange={change(name)}
        />
      ))}
    </div>
  );
}

interface SchemaFieldProps {
  name: string;
  schema: JsonSchema;
  root: JsonSchema;
  depth: number;
  required: boolean;
  value: unknown;
  onChange(value: unknown): void;
}

function SchemaField({ name, schema, root, depth, required, value, onChange }: SchemaFieldProps) {
  const label = schema.title ?? name;
  const hint = schema.description;
  const schemaKind = kindOf(schema);
  const kind = schemaKind === "object" && depth >= MAX_DEPTH ? "json" : schemaKind;
  if (kind === "boolean")
    return (
      <Checkbox
        label={schema.title ?? name}
        hint={hint}
        checked={(value ?? schema.default) === true}
        onChange={({ target }) => onChange(target.checked)}
      />
    );
  if (kind === "object")
    return (
      <fieldset className="rounded-lg border border-line px-3 pt-1 pb-3">
        <legend className="px-1 font-medium text-table">{label}</legend>
        <SchemaForm schema={schema} root={root} depth={depth + 1} value={(value ?? {}) as Value} onChange={onChange} />
      </fieldset>
    );
  if (kind === "json") {
    const mayBeText = allowsText(schema);
    const description = hint ?? (mayBeText ? "Text or JSON" : "JSON");
    return <JsonEditor label={label} hint={description} mayBeText={mayBeText} value={value} onChange={onChange} />;
  }
  return (
    <Field label={label} hint={hint} isRequired={required}>
      {(props) => (
        <Control {...props} required={required} kind={kind} schema={schema} value={value} onChange={onChange} />
      )}
    </Field>
  );
}

interface ControlProps {
  id: string;
  "aria-describedby"?: string;
  required: boolean;
  kind: "text" | "number" | "integer" | "choice";
  schema: JsonSchema;
  value: unknown;
  onChange(value: unknown): void;
}

function Control({ kind, schema, value, onChange, ...props }: ControlProps) {
  const placeholder = schema.default === undefined ? undefined : String(schema.default);
  if (kind === "choice")
    return (
      <Select
        id={props.id}
        value={(value ?? schema.default) as string | undefined}
        placeholder="Select…"
        options={(schema.enum as string[]).map((each) => ({ value: each, label: each }))}
        onChange={onChange}
      />
    );
  if (kind === "text")
    return (
      <TextArea
        {...props}
        rows={Math.min(Math.max(String(value ?? "").split("\n").length, 1), 8)}
        placeholder={placeholder}
        value={typeof value === "string" ? value : ""}
        onChange={({ target }) => onChange(target.value === "" ? undefined : target.value)}
      />
    );
  return (
    <Input
      {...props}
      type="number"
      step={kind === "integer" ? 1 : "any"}
      min={schema.minimum}
      max={schema.maximum}
      placeholder={placeholder}
      value={typeof value === "number" ? value : ""}
      onChange={({ target }) => onChange(Number.isNaN(target.valueAsNumber) ? undefined : target.valueAsNumber)}
    />
  );
}
