import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { canonicalJson } from "../upload/staging.ts";

export type Path = (string | number)[];
type Schema = JsonObject | boolean;

/** A schema violation, and the path of the part of the value that violates the schema. */
export interface SchemaFault {
  path: Path;
  message: string;
}

export const MAX_DEPTH = 300;

/** Limits the work that cyclic references, nested branches, and patterns on long strings cause. A step takes about 1 µs. */
const MAX_STEPS = 2_000_000;
const CHARS_PER_STEP = 16;

export class TooManyStepsError extends Error {}

/** Limits the total number of steps of the schema checks that share the budget. */
export class StepBudget {
  #left = MAX_STEPS;

  /** @throws TooManyStepsError */
  spend(chars = CHARS_PER_STEP): void {
    this.#left -= Math.ceil(chars / CHARS_PER_STEP);
    if (this.#left < 0) throw new TooManyStepsError();
  }
}

type Matches = (pattern: string, text: string) => boolean;

/** Checks values against a schema, which must be valid and supported. */
export class SchemaCheck {
  readonly #root: JsonObject;
  readonly #matches: Matches;
  readonly #budget: StepBudget;

  constructor(root: JsonObject, matches: Matches, budget: StepBudget) {
    this.#root = root;
    this.#budget = budget;
    this.#matches = (pattern, text) => {
      budget.spend(text.length);
      return matches(pattern, text);
    };
  }

  faults(given: unknown, value: unknown, path: Path = [], depth = 0): SchemaFault[] {
    const schema = given as Schema;
    if (schema === true) return [];
    if (schema === false) return [{ path, message: "is not allowed" }];
    this.#budget.spend();
    if (depth > MAX_DEPTH) throw new TooManyStepsError();
    const at = (part: unknown, of = value, where = path) => this.faults(part, of, where, depth + 1);
    const messages = [
      ...valueMessages(schema, value, this.#budget),
      ...branchMessages(schema, (part) => at(part).length === 0),
    ];
    if (typeof value === "string" && typeof schema.pattern === "string" && !this.#matches(schema.pattern, value))
      messages.push(`does not match the pattern "${schema.pattern}"`);
    const isMatch = schema.if !== undefined && at(schema.if).length === 0;
    const parts = [
      ...((schema.allOf as Schema[] | undefined) ?? []),
      ...(schema.if === undefined ? [] : [(isMatch ? schema.then : schema.else) ?? true]),
      ...(schema.$ref === undefined ? [] : [targetOf(this.#root, schema.$ref as string) ?? true]),
    ];
    return [
      ...messages.map((message) => ({ path, message })),
      ...parts.flatMap((part) => at(part)),
      ...(isObject(value) ? this.#members(schema, value, path, at) : []),
      ...(Array.isArray(value) ? itemFaults(schema, value, path, at) : []),
    ];
  }

  #members(schema: JsonObject, value: JsonObject, path: Path, at: At): SchemaFault[] {
    const { properties = {}, patternProperties = {}, additionalProperties = true, propertyNames = true } = schema;
    const dependent = Object.entries((schema.dependentSchemas as object | undefined) ?? {});
    const ofDependent = dependent.flatMap(([name, part]) => (Object.hasOwn(value, name) ? at(part) : []));
    const ofMembers = Object.entries(value).flatMap(([name, item]) => {
      const patterns = Object.entries(patternProperties as object).filter(([pattern]) => this.#matches(pattern, name));
      const own = Object.hasOwn(properties as object, name) ? [(properties as JsonObject)[name]] : [];
      const parts = [...own, ...patterns.map(([, part]) => part)];
      const used = parts.length === 0 ? [additionalProperties] : parts;
      const nameFaults = at(propertyNames, name as never, [...path, name]);
      return [...nameFaults, ...used.flatMap((part) => at(part, item as never, [...path, name]))];
    });
    return [...ofDependent, ...ofMembers];
  }
}

type At = (part: unknown, of?: never, where?: Path) => SchemaFault[];

function itemFaults(schema: JsonObject, value: unknown[], path: Path, at: At): SchemaFault[] {
  // A list in `items` of draft 7 has the meaning of `prefixItems` in draft 2020-12.
  const isTuple = Array.isArray(schema.items);
  const first = ((isTuple ? schema.items : schema.prefixItems) as Schema[] | undefined) ?? [];
  const rest = (isTuple ? schema.additionalItems : schema.items) ?? true;
  const ofItems = value.flatMap((item, index) => at(first[index] ?? rest, item as never, [...path, index]));
  if (schema.contains === undefined) return ofItems;
  const { minContains: min = 1, maxContains: max = Number.POSITIVE_INFINITY } = schema as Record<string, number>;
  const count = value.filter((item) => at(schema.contains, item as never).length === 0).length;
  if (count >= min && count <= max) return ofItems;
  const [amount, limit] = count < min ? ["few", `at least ${min}`] : ["many", `at most ${max}`];
  return [
    ...ofItems,
    { path, message: `has too ${amount} items that match "contains": it has ${count}, but must have ${limit}` },
  ];
}

function branchMessages({ anyOf, oneOf, not }: JsonObject, isMatch: (part: unknown) => boolean): string[] {
  const messages: string[] = [];
  if (anyOf !== undefined && !(anyOf as unknown[]).some(isMatch))
    messages.push('must match at least one schema of "anyOf"');
  const matching = oneOf === undefined ? 1 : (oneOf as unknown[]).filter(isMatch).length;
  if (matching !== 1) messages.push(`must match exactly one schema of "oneOf", but matches ${matching} of them`);
  if (not !== undefined && isMatch(not)) messages.push('must not match the schema in "not"');
  return messages;
}

/** Returns the violations of the keywords that apply to the value itself, not to its items or properties. */
function valueMessages(schema: JsonObject, value: unknown, budget: StepBudget): string[] {
  const messages: string[] = [];
  const { type, enum: allowed } = schema;
  if (type !== undefined && ![type].flat().some((name) => isOfType(value, name as string)))
    messages.push(`is of type ${typeOf(value)}, not ${[type].flat().join(" or ")}`);
  const textOf = (item: unknown): string => {
    const text = canonicalJson(item);
    budget.spend(text.length);
    return text;
  };
  const isEqual = (other: unknown) => textOf(other) === own;
  const own = allowed === undefined && !Object.hasOwn(schema, "const") ? "" : textOf(value);
  if (allowed !== undefined && !(allowed as unknown[]).some(isEqual))
    messages.push(`must be one of ${JSON.stringify(allowed)}`);
  if (Object.hasOwn(schema, "const") && !isEqual(schema.const))
    messages.push(`must be ${JSON.stringify(schema.const)}`);
  const s = schema as Record<string, number | undefined>;
  const limit = (name: string, isViolated: (bound: number) => boolean) => {
    const bound = s[name];
    if (bound !== undefined && isViolated(bound)) messages.push(`does not satisfy "${name}": ${bound}`);
  };
  if (typeof value === "number") {
    limit("minimum", (bound) => value < bound);
    limit("maximum", (bound) => value > bound);
    limit("exclusiveMinimum", (bound) => value <= bound);
    limit("exclusiveMaximum", (bound) => value >= bound);
    limit("multipleOf", (bound) => !isMultiple(value, bound));
  } else if (typeof value === "string") {
    budget.spend(value.length);
    const { length } = s.minLength === undefined && s.maxLength === undefined ? value : [...value];
    limit("minLength", (bound) => length < bound);
    limit("maxLength", (bound) => length > bound);
  } else if (Array.isArray(value)) {
    limit("minItems", (bound) => value.length < bound);
    limit("maxItems", (bound) => value.length > bound);
    if (schema.uniqueItems === true && new Set(value.map(textOf)).size < value.length)
      messages.push("must not contain duplicate items");
  } else if (isObject(value)) {
    const size = Object.keys(value).length;
    budget.spend(size + ((schema.required as string[] | undefined)?.length ?? 0));
    limit("minProperties", (bound) => size < bound);
    limit("maxProperties", (bound) => size > bound);
    messages.push(...missingProperties(schema, value));
  }
  return messages;
}

function missingProperties(schema: JsonObject, value: JsonObject): string[] {
  const isMissing = (name: string) => !Object.hasOwn(value, name);
  const missing = ((schema.required as string[] | undefined) ?? []).filter(isMissing);
  const dependent = Object.entries((schema.dependentRequired as Record<string, string[]> | undefined) ?? {});
  for (const [name, names] of dependent) if (!isMissing(name)) missing.push(...names.filter(isMissing));
  return missing.map((name) => `is missing the required property "${name}"`);
}

/** Tolerates rounding errors: 0.3 is a multiple of 0.1, although 0.3 / 0.1 is 2.9999999999999996. */
function isMultiple(value: number, of: number): boolean {
  const quotient = value / of;
  return Math.abs(quotient - Math.round(quotient)) < 1e-9 * Math.max(1, Math.abs(quotient));
}

/** Returns the schema to which a local reference points; undefined if there is none. */
export function targetOf(root: Schema, ref: string): Schema | undefined {
  if (!/^#(\/|$)/.test(ref)) return undefined;
  let target: unknown = root;
  for (const segment of ref.split("/").slice(1)) {
    const key = safeDecode(segment).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof target !== "object" || target === null || !Object.hasOwn(target, key)) return undefined;
    target = (target as JsonObject)[key];
  }
  return typeof target === "boolean" || isObject(target) ? target : undefined;
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const typeOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

const isOfType = (value: unknown, type: string): boolean =>
  type === "integer" ? Number.isInteger(value) : typeOf(value) === type;
