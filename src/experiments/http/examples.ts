import { invalidParts } from "../../platform/contract/invalid-parts.ts";
import { InvalidRequestError } from "../../platform/errors.ts";
import { type App, jsonText } from "../../platform/http/route.ts";
import { ExampleUpdate } from "../contract/examples.ts";
import { experimentRoutes } from "../contract/routes.ts";
import type { ExampleChange } from "../examples.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { gone } from "./gone.ts";
import { examplesOf, newExamplesOf } from "./multipart.ts";
import { serveAt } from "./route.ts";

export function serveExamples(app: App, at: readonly string[], { examples }: ExperimentsService): void {
  const routes = experimentRoutes.examples;

  serveAt(app, at, routes.listExamples, async ({ caller, query }) =>
    jsonText((await examples.list(caller, query)).json),
  );

  serveAt(app, at, routes.createExample, async ({ caller, body }) => {
    const [example] = (await examples.create(caller, body.dataset_id, [body])).value();
    return jsonText(JSON.stringify(example));
  });

  serveAt(app, at, routes.createExamples, async ({ caller, body }) => {
    const [first] = body;
    if (!first) return jsonText("[]");
    refuseOtherDatasets(body.map(({ dataset_id }) => dataset_id));
    return jsonText((await examples.create(caller, first.dataset_id, body)).json);
  });

  serveAt(app, at, routes.countExamples, async ({ caller, query }) =>
    jsonText((await examples.count(caller, query)).json),
  );

  serveAt(app, at, routes.readExample, async ({ caller, params, query }) =>
    jsonText((await examples.read(caller, params.example_id, query.as_of)).json),
  );

  serveAt(app, at, routes.updateExample, async ({ caller, params, body }) => {
    const [example] = (await examples.update(caller, [{ ...body, id: params.example_id }])).value();
    return jsonText(JSON.stringify(example));
  });

  serveAt(app, at, routes.deleteExample, async ({ caller, params, context }) => {
    await examples.delete(caller, [params.example_id]);
    return gone(context, "Example");
  });

  serveAt(app, at, routes.deleteExamples, async ({ caller, query, context }) => {
    await examples.delete(caller, query.example_ids);
    return gone(context, "Examples");
  });

  // The clients write /v1/platform to an address without the prefix.
  const platform = at.map((prefix) => (prefix === "" ? "/v1" : prefix));

  serveAt(app, platform, routes.uploadExamples, async ({ caller, params, context }) => {
    const bodies = newExamplesOf(await examplesOf(context));
    const made = (await examples.create(caller, params.dataset_id, bodies)).value();
    return context.json({ count: made.length, example_ids: made.map(({ id }) => id) }, 201);
  });

  serveAt(app, platform, routes.patchExamples, async ({ caller, params, context }) => {
    const changes = (await examplesOf(context)).map(({ id, body }): ExampleChange => {
      const result = ExampleUpdate.safeParse(body, { reportInput: true });
      if (!result.success) throw new InvalidRequestError(invalidParts(result.error.issues, body, ["body", id]));
      return { ...result.data, id };
    });
    const changed = (await examples.update(caller, changes, params.dataset_id)).value();
    return context.json({ count: changed.length, example_ids: changed.map(({ id }) => id) });
  });
}

function refuseOtherDatasets(ids: string[]): void {
  const index = ids.findIndex((id) => id !== ids[0]);
  if (index < 0) return;
  const msg = "Value error, all examples of a request belong to one dataset";
  throw new InvalidRequestError([{ loc: ["body", index, "dataset_id"], msg, type: "value_error", input: ids[index] }]);
}
