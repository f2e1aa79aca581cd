/** JSON Schema keywords that forms use. Forms ignore all other keywords. */
export interface JsonSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  minimum?: number;
  maximum?: number;
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  definitions?: Record<string, JsonSchema>;
}

/** Input that a form uses for a schema. `json` is for types without a dedicated input. */
export type FieldKind = "text" | "number" | "integer" | "boolean" | "choice" | "object" | "json";

/** Resolves references and removes the `null` alternative of optional fields. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const name = schema.$ref?.match(/^#\/(?:\$defs|definitions)\/(.+)$/)?.[1];
  const referred = name === undefined ? undefined : (root.$defs ?? root.definitions)?.[name];
  if (referred) return { ...resolve(referred, root), ...without(schema, "$ref") };
  const variants = (schema.anyOf ?? schema.oneOf)?.filter((variant) => variant.type !== "null");
  const [only] = variants ?? [];
  if (only && variants?.length === 1) return { ...resolve(only, root), ...without(schema, "anyOf", "oneOf") };
  return schema;
}

const without = (schema: JsonSchema, ...keys: (keyof JsonSchema)[]): JsonSchema =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key as keyof JsonSchema)));

/** @param schema the resolved schema */
export function kindOf(schema: JsonSchema): FieldKind {
  if (schema.enum?.every((value) => typeof value === "string")) return "choice";
  const [type] = [schema.type ?? (schema.properties ? "object" : [])].flat().filter((each) => each !== "null");
  if (type === "string") return "text";
  if (type === "number" || type === "integer" || type === "boolean") return type;
  return type === "object" && schema.properties ? "object" : "json";
}

/** Whether the schema allows strings. A schema without constraints allows strings. @param schema the resolved schema */
export function allowsText(schema: JsonSchema): boolean {
  const { type, anyOf, oneOf, properties, items } = schema;
  const variants = anyOf ?? oneOf;
  if (variants) return variants.some(allowsText);
  if (type !== undefined) return [type].flat().includes("string");
  return !properties && !items && schema.const === undefined && schema.enum === undefined && !schema.allOf;
}

/** Returns a schema's properties in order. Empty if the schema has no properties. */
export const fieldsOf = (schema: JsonSchema | null | undefined): [name: string, schema: JsonSchema][] =>
  schema ? Object.entries(resolve(schema, schema).properties ?? {}) : [];
