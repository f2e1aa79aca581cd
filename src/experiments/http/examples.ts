import type { Context } from "hono";
import { invalidParts } from "../../platform/contract/validation-errors.ts";
import { InvalidRequestError } from "../../platform/errors.ts";
import { type Env, jsonText } from "../../platform/http/route.ts";
import { JsonError } from "../../platform/lib/json/json.ts";
import { type ExampleCreate, ExampleCreate as ExampleSchema, ExampleUpdate } from "../contract/examples.ts";
import { uuidOrHex } from "../contract/fields.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExampleChange } from "../datasets/examples.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import type { Routes } from "./route.ts";

/** @param platform the routes below `/platform`: with a base URL without the prefix, clients send `/v1/platform` */
export function serveExamples(v1: Routes, platform: Routes, { examples }: ExperimentsService): void {
  const routes = experimentRoutes.examples;

  v1.json(routes.listExamples, ({ caller, query }) => examples.list(caller, query));

  v1.serve(routes.createExample, async ({ caller, body }) => {
    const [example] = (await examples.create(caller, body.dataset_id, [body])).value();
    return jsonText(JSON.stringify(example));
  });

  v1.serve(routes.createExamples, async ({ caller, body }) => {
    const [first] = body;
    if (!first) return jsonText("[]");
    assertSameDataset(body.map(({ dataset_id }) => dataset_id));
    return jsonText((await examples.create(caller, first.dataset_id, body)).json);
  });

  v1.json(routes.countExamples, ({ caller, query }) => examples.count(caller, query));
  v1.json(routes.readExample, ({ caller, params, query }) => examples.read(caller, params.example_id, query.as_of));

  v1.serve(routes.updateExample, async ({ caller, params, body }) => {
    const [example] = (await examples.update(caller, [{ ...body, id: params.example_id }])).value();
    return jsonText(JSON.stringify(example));
  });

  v1.deletion(routes.deleteExample, "Example", ({ caller, params }) => examples.delete(caller, [params.example_id]));
  v1.deletion(routes.deleteExamples, "Examples", ({ caller, query }) => examples.delete(caller, query.example_ids));

  platform.serve(routes.uploadExamples, async ({ caller, params, context }) => {
    const bodies = validateNewExamples(await readExampleForm(context));
    const created = (await examples.create(caller, params.dataset_id, bodies)).value();
    return context.json({ count: created.length, example_ids: created.map(({ id }) => id) }, 201);
  });

  platform.serve(routes.patchExamples, async ({ caller, params, context }) => {
    const changes = (await readExampleForm(context)).map(({ id, body }): ExampleChange => {
      const result = ExampleUpdate.safeParse(body, { reportInput: true });
      if (!result.success) throw new InvalidRequestError(invalidParts(result.error.issues, body, ["body", id]));
      return { ...result.data, id };
    });
    const changed = (await examples.update(caller, changes, params.dataset_id)).value();
    return context.json({ count: changed.length, example_ids: changed.map(({ id }) => id) });
  });
}

function assertSameDataset(ids: string[]): void {
  const index = ids.findIndex((id) => id !== ids[0]);
  if (index < 0) return;
  const msg = "Value error, all examples of a request must belong to one dataset";
  throw new InvalidRequestError([{ loc: ["body", index, "dataset_id"], msg, type: "value_error", input: ids[index] }]);
}

/** The parts `{id}`, `{id}.inputs` and `{id}.outputs` of a multipart body. */
interface ExampleParts {
  id: string;
  body: Record<string, unknown>;
}

/** @throws InvalidRequestError for attachments, which are not supported */
async function readExampleForm(context: Context<Env>): Promise<ExampleParts[]> {
  const form = await context.req.formData().catch(() => {
    throw invalidForm([], "The body must be multipart/form-data with one part per example");
  });
  const examples = new Map<string, Record<string, unknown>>();
  for (const [name, part] of form.entries()) {
    const [given = "", field, ...more] = name.split(".");
    const id = uuidOrHex.safeParse(given);
    if (!id.success) throw invalidForm([name], "The part name must begin with the id of the example, a UUID");
    if (more.length > 0 || (field !== undefined && field !== "inputs" && field !== "outputs"))
      throw invalidForm([name], "Attachments are not supported: a part must be {id}, {id}.inputs or {id}.outputs");
    const value = await parsePart(context, typeof part === "string" ? part : await part.text(), name);
    examples.set(id.data, {
      ...examples.get(id.data),
      ...(field === undefined ? (value as object) : { [field]: value }),
    });
  }
  return [...examples].map(([id, body]) => ({ id, body }));
}

/** @throws InvalidRequestError with the reasons of all invalid examples */
function validateNewExamples(parts: ExampleParts[]): ExampleCreate[] {
  const reasons: InvalidRequestError["parts"] = [];
  const examples = parts.flatMap(({ id, body }) => {
    const result = ExampleSchema.safeParse({ ...body, id }, { reportInput: true });
    if (!result.success) reasons.push(...invalidParts(result.error.issues, body, ["body", id]));
    return result.success ? [result.data] : [];
  });
  if (reasons.length > 0) throw new InvalidRequestError(reasons);
  return examples;
}

async function parsePart(context: Context<Env>, text: string, part: string): Promise<unknown> {
  try {
    return await context.get("body_parser").parseText(text);
  } catch (error) {
    if (error instanceof JsonError) throw invalidForm([part], `The part ${error.message}`);
    throw error;
  }
}

const invalidForm = (loc: string[], msg: string): InvalidRequestError =>
  new InvalidRequestError([{ loc: ["body", ...loc], msg, type: "value_error" }]);
