import { randomInt, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Method, Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";

/** Random characters of three bytes, which Postgres cannot compress: an index accepts 2,704 bytes. */
const text = (chars: number) =>
  Array.from({ length: chars }, () => String.fromCodePoint(randomInt(0x4e00, 0x9fff))).join("");

describe.each(databases)("long texts in indexed columns, on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  it.each([660, 1_000, 5_000, 100_000])("of %i characters are stored, cut or refused", async (chars) => {
    const named = () => ({ name: text(chars) });
    const session_id = (await api.call("POST", "/api/v1/sessions", { name: randomUUID() })).id;
    const dataset_id = (await api.call("POST", "/api/v1/datasets", { name: randomUUID() })).id;
    const run = (fields: object) => ({
      ...{ id: randomUUID(), name: "run", run_type: "chain", start_time: new Date().toISOString() },
      ...fields,
    });
    const price = { name: "price", match_pattern: "^x$", prompt_cost: 0, completion_cost: 0 };
    const deployment = { ...named(), source: "internal_docker", source_config: {}, source_revision_config: {} };
    const provider = { provider_id: text(chars), name: "x", client_id: "x", client_secret: "x" };
    const urls = { auth_url: "https://example.com/a", token_url: "https://example.com/t" };
    const requests: [Method, string, object][] = [
      ["POST", "/api/v1/sessions", named()],
      ["PATCH", `/api/v1/sessions/${session_id}`, named()],
      ["POST", "/api/v1/datasets", named()],
      ["PATCH", `/api/v1/datasets/${dataset_id}`, named()],
      ["PUT", `/api/v1/datasets/${dataset_id}/tags`, { as_of: "latest", tag: text(chars) }],
      ["POST", "/api/v1/examples", { dataset_id, inputs: {}, split: text(chars) }],
      ["POST", "/api/v1/feedback", { session_id, key: text(chars), score: 1 }],
      ["POST", "/api/v1/feedback-configs", { feedback_key: text(chars), feedback_config: { type: "continuous" } }],
      ["POST", "/api/v1/model-price-map", { ...price, ...named(), provider: text(chars) }],
      ["POST", "/api/v1/annotation-queues", named()],
      ["POST", "/api/v1/repos", { repo_handle: text(chars), is_public: false }],
      ["POST", "/api/v1/runs", run(named())],
      ["POST", "/api/v1/runs", run({ run_type: text(chars) })],
      ["POST", "/api/v1/runs", run({ session_name: text(chars) })],
      ["POST", "/api/v1/runs", run({ address: `lrn:agents/${text(chars)}/environments/x` })],
      ["POST", "/api/v1/runs", run({ extra: { metadata: { thread_id: text(chars) } } })],
      ["POST", "/assistants", { graph_id: "chain", ...named() }],
      ["PUT", "/store/items", { namespace: [text(chars)], key: "key", value: {} }],
      ["PUT", "/store/items", { namespace: ["namespace"], key: text(chars), value: {} }],
      ["POST", "/v2/deployments", deployment],
      ["POST", "/v2/auth/providers", { ...provider, ...urls }],
    ];
    const failed = [];
    for (const [method, path, body] of requests) {
      const { status } = await api.send(method, path, body);
      if (status === 404 || status >= 500) failed.push([method, path, Object.keys(body).at(-1), status]);
    }
    expect(failed).toEqual([]);
  });
});
