import { type InvalidPart, InvalidRequestError } from "../../platform/errors.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { DatasetRow } from "../storage/schema.ts";
import { JsonSchema, SchemaError } from "./json-schema.ts";
import { StepBudget } from "./schema-check.ts";

const FIELDS = { inputs: "inputs_schema_definition", outputs: "outputs_schema_definition" } as const;

/** The schemas of the datasets of a request, whose checks share one limit of steps. */
export class SchemaChecks {
  readonly #budget = new StepBudget();
  readonly #schemas = new Map<number, DatasetSchemas>();

  of(dataset: DatasetRow): DatasetSchemas {
    const schemas = this.#schemas.get(dataset.dataset_no) ?? new DatasetSchemas(dataset, this.#budget);
    this.#schemas.set(dataset.dataset_no, schemas);
    return schemas;
  }
}

/** The JSON schemas of a dataset. New and changed examples must match them; an example without outputs matches any schema of outputs. */
class DatasetSchemas {
  readonly #schemas: { field: keyof typeof FIELDS; schema: JsonSchema }[];

  readonly #budget: StepBudget;

  constructor(
    { inputs_schema, outputs_schema }: Pick<DatasetRow, "inputs_schema" | "outputs_schema">,
    budget: StepBudget,
  ) {
    this.#budget = budget;
    const given = [
      { field: "inputs", text: inputs_schema },
      { field: "outputs", text: outputs_schema },
    ] as const;
    this.#schemas = given.flatMap(({ field, text }) => (text === null ? [] : compiled(field, text)));
  }

  /** @throws InvalidRequestError with the schema violations */
  check(
    example: { inputs?: JsonObject | undefined; outputs?: JsonObject | null | undefined },
    loc: (string | number)[],
  ) {
    const parts = this.#schemas.flatMap(({ field, schema }): InvalidPart[] => {
      const value = example[field];
      if (value === undefined || value === null) return [];
      return schema.faultsOf(value, this.#budget).map(({ path, message }) => ({
        loc: [...loc, field, ...path],
        msg: `Value error, ${message} (checked against the dataset's ${FIELDS[field]})`,
        type: "value_error",
      }));
    });
    if (parts.length > 0) throw new InvalidRequestError(parts);
  }
}

/** Returns no schema if it is not supported, because earlier versions of Threadmill stored schemas without a check. */
function compiled(field: keyof typeof FIELDS, text: string): { field: keyof typeof FIELDS; schema: JsonSchema }[] {
  try {
    return [{ field, schema: new JsonSchema(JSON.parse(text)) }];
  } catch (error) {
    if (error instanceof SchemaError) return [];
    throw error;
  }
}

/** @throws InvalidRequestError when a schema is invalid or not supported */
export function assertSchemas(
  body: { [Field in (typeof FIELDS)[keyof typeof FIELDS]]?: JsonObject | null | undefined },
) {
  for (const name of Object.values(FIELDS)) {
    const schema = body[name];
    if (!schema) continue;
    try {
      new JsonSchema(schema);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      const { path, message } = error;
      throw new InvalidRequestError([
        { loc: ["body", name, ...path], msg: `Value error, ${message}`, type: "value_error" },
      ]);
    }
  }
}
