import { createRequire } from "node:module";
import type { RE2JS } from "re2js";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import {
  MAX_DEPTH,
  type Path,
  SchemaCheck,
  type SchemaFault,
  type StepBudget,
  TooManyStepsError,
  targetOf,
} from "./schema-check.ts";

/** A schema that is invalid or not supported. */
export class SchemaError extends Error {
  readonly path: Path;

  constructor(path: Path, message: string) {
    super(message);
    this.path = path;
  }
}

const MAX_FAULTS = 100;
const MAX_PATTERN_CHARS = 1_000;
const MAX_PROGRAM = 2_000;

/** Loads RE2 (260 KB) at the first pattern. Synchronous, because schemas are compiled in transactions, which must not await an import. */
const loadRe2 = () => (createRequire(import.meta.url)("re2js") as { RE2JS: typeof RE2JS }).RE2JS;

const TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"];
const NOT_SUPPORTED = ["unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef", "$anchor"];

const isSchema = (value: unknown): boolean => typeof value === "boolean" || isObject(value);
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((item) => typeof item === "string");
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
const isNumber = (value: unknown): boolean => typeof value === "number";

/** Requirements for the values of keywords. `const` may have any value. Unknown keywords are ignored. */
const KEYWORDS: { names: string[]; is: (value: unknown) => boolean; must: string }[] = [
  {
    names: ["type"],
    is: (value) => [value].flat().every((name) => TYPES.includes(name as string)),
    must: `be the name of a type (${TYPES.join(", ")}) or an array of such names`,
  },
  { names: ["enum"], is: Array.isArray, must: "be an array" },
  {
    names: ["minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"],
    is: isCount,
    must: "be a non-negative integer",
  },
  { names: ["minProperties", "maxProperties"], is: isCount, must: "be a non-negative integer" },
  { names: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], is: isNumber, must: "be a number" },
  {
    names: ["multipleOf"],
    is: (value) => isNumber(value) && (value as number) > 0,
    must: "be a number greater than 0",
  },
  { names: ["required"], is: isTexts, must: "be an array of strings" },
  { names: ["pattern", "$ref"], is: (value) => typeof value === "string", must: "be a string" },
  { names: ["uniqueItems"], is: (value) => typeof value === "boolean", must: "be true or false" },
  {
    names: ["dependentRequired"],
    is: (value) => isObject(value) && Object.values(value).every(isTexts),
    must: "be an object whose values are arrays of strings",
  },
  {
    names: ["allOf", "anyOf", "oneOf", "prefixItems"],
    is: (value) => Array.isArray(value) && value.every(isSchema),
    must: "be an array of schemas",
  },
  { names: ["items"], is: (value) => [value].flat().every(isSchema), must: "be a schema or an array of schemas" },
  {
    names: ["not", "if", "then", "else", "contains", "additionalProperties", "additionalItems", "propertyNames"],
    is: isSchema,
    must: "be a schema",
  },
  {
    names: ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"],
    is: (value) => isObject(value) && Object.values(value).every(isSchema),
    must: "be an object whose values are schemas",
  },
];

/**
 * A JSON Schema (draft 2020-12 or draft 7) without remote references and without the keywords in NOT_SUPPORTED. `format` is only an
 * annotation. Patterns are matched in linear time.
 */
export class JsonSchema {
  readonly #root: JsonObject;
  readonly #patterns = new Map<string, RE2JS>();
  readonly #checked = new Set<unknown>();

  /** @throws SchemaError */
  constructor(root: JsonObject) {
    this.#root = root;
    this.#check(root, []);
  }

  /** Returns the schema violations of a value, at most 100; an empty list if the value matches. */
  faultsOf(value: unknown, budget: StepBudget): SchemaFault[] {
    const matches = (pattern: string, text: string) => this.#patternOf(pattern, []).matcher(text).find();
    try {
      return new SchemaCheck(this.#root, matches, budget).faults(this.#root, value).slice(0, MAX_FAULTS);
    } catch (error) {
      if (error instanceof TooManyStepsError)
        return [
          {
            path: [],
            message: "takes too long to validate: simplify the schema or the value, or send fewer examples per request",
          },
        ];
      throw error;
    }
  }

  #check(schema: unknown, path: Path): void {
    if (!isObject(schema) || this.#checked.has(schema)) return;
    this.#checked.add(schema);
    if (path.length > MAX_DEPTH) throw new SchemaError([], `is nested more than ${MAX_DEPTH} levels deep`);
    const refused = NOT_SUPPORTED.find((name) => name in schema);
    if (refused) throw new SchemaError([...path, refused], `"${refused}" is not supported`);
    for (const { names, is, must } of KEYWORDS)
      for (const name of names) {
        if (!Object.hasOwn(schema, name)) continue;
        if (!is(schema[name])) throw new SchemaError([...path, name], `"${name}" must ${must}`);
        this.#checkKeyword(name, schema[name], [...path, name]);
      }
  }

  #checkKeyword(name: string, value: unknown, path: Path): void {
    if (name === "$ref") {
      const target = targetOf(this.#root, value as string);
      if (target === undefined)
        throw new SchemaError(
          path,
          `the reference "${value}" must refer to a part of this schema; references to other documents are not supported`,
        );
      this.#check(target, path);
    }
    if (name === "pattern") this.#patternOf(value as string, path);
    if (name === "patternProperties")
      for (const pattern of Object.keys(value as object)) this.#patternOf(pattern, [...path, pattern]);
    if (["enum", "const", "type", "required", "dependentRequired"].includes(name)) return;
    if (["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"].includes(name))
      for (const [key, part] of Object.entries(value as object)) this.#check(part, [...path, key]);
    else if (Array.isArray(value)) for (const [index, part] of value.entries()) this.#check(part, [...path, index]);
    else this.#check(value, path);
  }

  #patternOf(text: string, path: Path): RE2JS {
    const known = this.#patterns.get(text);
    if (known) return known;
    try {
      if (text.length > MAX_PATTERN_CHARS) throw new Error(`it has more than ${MAX_PATTERN_CHARS} characters`);
      const pattern = loadRe2().compile(text);
      if (pattern.programSize() > MAX_PROGRAM)
        throw new Error("its repetition counts are too large; use + or * instead");
      this.#patterns.set(text, pattern);
      return pattern;
    } catch (error) {
      throw new SchemaError(path, `the pattern "${text}" is not supported: ${(error as Error).message}`);
    }
  }
}
