import { globSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { z } from "zod";

interface Route {
  method: string;
  path: string;
  request?: { body?: { content?: Record<string, { schema?: unknown }> } };
}

const ROOT = join(import.meta.dirname, "../../src");

/** Every route of the contracts that updates a record with a JSON object. */
const modules = await Promise.all(
  globSync("*/contract/**/*.ts", { cwd: ROOT }).map((file) => import(join(ROOT, file))),
);
const bodies = modules
  .flatMap((exported) => Object.values(exported))
  .filter((group) => typeof group === "object" && group !== null)
  .flatMap((group) => Object.values(group as object) as Route[])
  .filter((route) => route?.method === "patch")
  .map(({ path, request }) => [path, request?.body?.content?.["application/json"]?.schema as z.ZodType] as const)
  .filter(([, schema]) => schema?.type === "object");

/** A list of changes to several records, instead of the new fields of one. */
const BULK = "/platform/datasets/{dataset_id}/examples/metadata";

/** Fields that identify the record. */
const REQUIRED: Record<string, object> = { "/feedback-configs": { feedback_key: "k" } };

describe("the body of PATCH", () => {
  it("is found for the routes of every product", () => {
    const paths = bodies.map(([path]) => path);
    for (const path of ["/runs/crons/{cron_id}", "/sessions/{session_id}", "/v2/deployments/{deployment_id}"])
      expect(paths).toContain(path);
  });

  // zod adds defaults for missing fields, and the update would overwrite what the record has.
  it.each(bodies.filter(([path]) => path !== BULK))(
    "%s gets no fields that the request does not have",
    (path, schema) => {
      const given = REQUIRED[path] ?? {};
      expect(schema.parse(given)).toEqual(given);
    },
  );
});
