import type { Context } from "hono";
import { invalidParts } from "../../platform/contract/invalid-parts.ts";
import { InvalidRequestError } from "../../platform/errors.ts";
import type { Env } from "../../platform/http/route.ts";
import { JsonError } from "../../platform/lib/json/json.ts";
import { type ExampleCreate, ExampleCreate as ExampleSchema } from "../contract/examples.ts";
import { looseUuid } from "../contract/fields.ts";

/** An example as a multipart body has it: a part named by its id, and `{id}.inputs` and `{id}.outputs` beside it. */
interface ExampleParts {
  id: string;
  body: Record<string, unknown>;
}

/** Reads the examples of a multipart body, each as one object with its id. Attachments are refused: nothing keeps them. */
export async function examplesOf(context: Context<Env>): Promise<ExampleParts[]> {
  const form = await context.req.formData().catch(() => {
    throw refused([], "The body must be multipart/form-data with a part for each example");
  });
  const examples = new Map<string, Record<string, unknown>>();
  for (const [name, part] of form.entries()) {
    const [given = "", field, ...more] = name.split(".");
    const id = looseUuid.safeParse(given);
    if (!id.success) throw refused([name], "The name of a part begins with the id of its example, a UUID");
    if (more.length > 0 || (field !== undefined && field !== "inputs" && field !== "outputs"))
      throw refused([name], "Attachments are not kept here; a part is an example, its inputs or its outputs");
    const value = await jsonOf(context, typeof part === "string" ? part : await part.text(), name);
    examples.set(id.data, {
      ...examples.get(id.data),
      ...(field === undefined ? (value as object) : { [field]: value }),
    });
  }
  return [...examples].map(([id, body]) => ({ id, body }));
}

/** @throws InvalidRequestError with the reasons for all of them */
export function newExamplesOf(parts: ExampleParts[]): ExampleCreate[] {
  const reasons: InvalidRequestError["parts"] = [];
  const examples = parts.flatMap(({ id, body }) => {
    const result = ExampleSchema.safeParse({ ...body, id }, { reportInput: true });
    if (!result.success) reasons.push(...invalidParts(result.error.issues, body, ["body", id]));
    return result.success ? [result.data] : [];
  });
  if (reasons.length > 0) throw new InvalidRequestError(reasons);
  return examples;
}

async function jsonOf(context: Context<Env>, text: string, part: string): Promise<unknown> {
  try {
    return await context.get("body_parser").parseText(text);
  } catch (error) {
    if (error instanceof JsonError) throw refused([part], `The part ${error.message}`);
    throw error;
  }
}

const refused = (loc: string[], msg: string): InvalidRequestError =>
  new InvalidRequestError([{ loc: ["body", ...loc], msg, type: "value_error" }]);
