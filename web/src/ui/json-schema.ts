/** A JSON Schema, as far as forms read it. What else it says is the server's to check. */
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

/** What a form draws for a schema. `json` for whatever has no input of its own. */
export type FieldKind = "text" | "number" | "integer" | "boolean" | "choice" | "object" | "json";

/** The schema itself: behind references, and without the "or null" of what is optional. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const name = schema.$ref?.match(/^#\/(?:\$defs|definitions)\/(.+)$/)?.[1];
  const referred = name === undefined ? undefined : (root.$defs ?? root.definitions)?.[name];
  if (referred) return { ...resolve(referred, root), ...without(schema, "$ref") };
  const ways = (schema.anyOf ?? schema.oneOf)?.filter((way) => way.type !== "null");
  const [only] = ways ?? [];
  if (only && ways?.length === 1) return { ...resolve(only, root), ...without(schema, "anyOf", "oneOf") };
  return schema;
}

const without = (schema: JsonSchema, ...keys: (keyof JsonSchema)[]): JsonSchema =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key as keyof JsonSchema)));

/** @param schema resolved */
export function kindOf(schema: JsonSchema): FieldKind {
  if (schema.enum?.every((value) => typeof value === "string")) return "choice";
  const [type] = [schema.type ?? (schema.properties ? "object" : [])].flat().filter((each) => each !== "null");
  if (type === "string") return "text";
  if (type === "number" || type === "integer" || type === "boolean") return type;
  return type === "object" && schema.properties ? "object" : "json";
}

/** Text is among what it allows; so it is where nothing is said of the type. @param schema resolved */
export function takesText(schema: JsonSchema): boolean {
  const { type, anyOf, oneOf, properties, items } = schema;
  const ways = anyOf ?? oneOf;
  if (ways) return ways.some(takesText);
  if (type !== undefined) return [type].flat().includes("string");
  return !properties && !items && schema.const === undefined && schema.enum === undefined && !schema.allOf;
}

/** The fields of a form, in the order of the schema; empty when it names none. */
export const fieldsOf = (schema: JsonSchema | null | undefined): [name: string, schema: JsonSchema][] =>
  schema ? Object.entries(resolve(schema, schema).properties ?? {}) : [];
