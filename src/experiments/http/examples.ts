import { InvalidRequestError } from "../../platform/errors.ts";
import type { BaseUrlOptions } from "../../platform/http/base-url.ts";
import { jsonText } from "../../platform/http/route.ts";
import { exampleRoutes } from "../contract/datasets/examples.ts";
import { platformExampleRoutes } from "../contract/datasets/platform-examples.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { formOf } from "./datasets.ts";
import { apiUrlOf, type Routes } from "./route.ts";

/** @param base_url options for the base URL of the links to attachments */
export function serveExamples(v1: Routes, { examples }: ExperimentsService, base_url: BaseUrlOptions): void {
  const routes = exampleRoutes;

  v1.json(routes.listExamples, ({ caller, query, context }) =>
    examples.list(caller, query, apiUrlOf(context, base_url)),
  );

  v1.serve(routes.createExample, async ({ caller, body, context }) => {
    const [example] = (await examples.create(caller, body.dataset_id, [body], apiUrlOf(context, base_url))).value();
    return jsonText(JSON.stringify(example));
  });

  v1.serve(routes.createExamples, async ({ caller, body, context }) => {
    const [first] = body;
    if (!first) return jsonText("[]");
    assertSameDataset(body.map(({ dataset_id }) => dataset_id));
    return jsonText((await examples.create(caller, first.dataset_id, body, apiUrlOf(context, base_url))).json);
  });

  v1.json(routes.updateExamples, ({ caller, body, context }) =>
    examples.update(caller, body, apiUrlOf(context, base_url)),
  );
  v1.json(routes.countExamples, ({ caller, query }) => examples.count(caller, query));

  v1.json(routes.readExample, ({ caller, params, query, context }) =>
    examples.read(caller, params.example_id, query.as_of, apiUrlOf(context, base_url)),
  );

  v1.serve(routes.updateExample, async ({ caller, params, body, context }) => {
    const [example] = (
      await examples.update(caller, [{ ...body, id: params.example_id }], apiUrlOf(context, base_url))
    ).value();
    return jsonText(JSON.stringify(example));
  });

  v1.deletion(routes.deleteExample, "Example", ({ caller, params }) => examples.delete(caller, [params.example_id]));
  v1.deletion(routes.deleteExamples, "Examples", ({ caller, query }) => examples.delete(caller, query.example_ids));
}

/** Serves the routes below `/platform`. A worker thread parses multipart bodies, because they may contain attachments. */
export function servePlatformExamples(platform: Routes, { examples }: ExperimentsService): void {
  const routes = platformExampleRoutes;

  platform.serve(routes.uploadExamples, async ({ caller, params, context }) =>
    context.json((await examples.upload(caller, params.dataset_id, ...(await formOf(context)))).value(), 201),
  );

  platform.serve(routes.upsertExamples, async ({ caller, context }) =>
    context.json((await examples.upsert(caller, ...(await formOf(context)))).value(), 201),
  );

  platform.json(routes.patchExamples, async ({ caller, params, context }) =>
    examples.patch(caller, params.dataset_id, ...(await formOf(context))),
  );

  platform.serve(routes.updateExampleMetadata, async ({ caller, params, body, context }) =>
    context.json((await examples.updateMetadata(caller, params.dataset_id, body)).value(), 207),
  );

  platform.deletion(routes.deleteExampleOfDataset, "Example", ({ caller, params }) =>
    examples.deleteOf(caller, params.dataset_id, params.example_id),
  );

  platform.deletion(routes.eraseExamples, "Examples", ({ caller, body }) =>
    body.hard_delete ? examples.erase(caller, body.example_ids) : examples.delete(caller, body.example_ids),
  );
}

function assertSameDataset(ids: string[]): void {
  const index = ids.findIndex((id) => id !== ids[0]);
  if (index < 0) return;
  const msg = "Value error, all examples in a request must belong to the same dataset";
  throw new InvalidRequestError([{ loc: ["body", index, "dataset_id"], msg, type: "value_error", input: ids[index] }]);
}
