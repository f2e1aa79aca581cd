import { Checkbox, Field, Input, TextArea } from "./field.tsx";
import { JsonEditor } from "./json-editor.tsx";
import { fieldsOf, type JsonSchema, kindOf, resolve, takesText } from "./json-schema.ts";
import { Select } from "./select.tsx";

type Value = Record<string, unknown>;

/** Objects further in are written as JSON: a type that contains itself has no end. */
const MAX_DEPTH = 3;

/**
 * A form for an object, by its JSON Schema. A field that is left empty is left out of the object, and keys that the schema does not
 * name stay as they are.
 */
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
  /** Of this form within others. */
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
  const label = `${schema.title ?? name}${required ? "" : " (optional)"}`;
  const hint = schema.description;
  const found = kindOf(schema);
  const kind = found === "object" && depth >= MAX_DEPTH ? "json" : found;
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
    const mayBeText = takesText(schema);
    const says = hint ?? (mayBeText ? "Text, or JSON" : "JSON");
    return <JsonEditor label={label} hint={says} mayBeText={mayBeText} value={value} onChange={onChange} />;
  }
  return (
    <Field label={label} hint={hint}>
      {(props) => <Control {...props} kind={kind} schema={schema} value={value} onChange={onChange} />}
    </Field>
  );
}

interface ControlProps {
  id: string;
  "aria-describedby"?: string;
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
        placeholder="Choose one"
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
