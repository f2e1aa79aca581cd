import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { controlRoutes } from "../../../src/control-plane/contract/routes.ts";
import { databases } from "../../support/databases.ts";
import { UNKNOWN_ID } from "../scenario.ts";
import { ControlApi, DEPLOYMENT_FIELDS, ofImage, REVISION_FIELDS, type User, type Wire } from "./api.ts";

const LOGS = `/v2/deployments/${UNKNOWN_ID}/revisions/${UNKNOWN_ID}/logs`;
const AT_LEAST_ONE = ["greater_than_equal", "Input should be greater than or equal to 1"];
const NOT_WHOLE = ["int_parsing", "Input should be a valid integer, unable to parse string as an integer"];
const TOO_SHORT = "Input should be a valid UUID, invalid length: expected length 32 for simple format, found 1";
const SOURCES = "Input should be 'github', 'external_docker', 'internal_docker' or 'internal_source'";

/** What is wrong with a request: places, each with FastAPI's word and its sentence. */
type Case = [method: string, path: string, body: unknown, ...reasons: [loc: unknown[], type: string, msg: string][]];

const spec = (resource_spec: object) => ofImage({ source_config: { resource_spec } });
const inSpec = (field: string) => ["body", "source_config", "resource_spec", field];

const CASES: Case[] = [
  ["GET", "/v2/deployments?limit=0", undefined, [["query", "limit"], ...AT_LEAST_ONE] as never],
  [
    "GET",
    "/v2/deployments?limit=101",
    undefined,
    [["query", "limit"], "less_than_equal", "Input should be less than or equal to 100"],
  ],
  [
    "GET",
    "/v2/deployments?limit=x&offset=-1",
    undefined,
    [["query", "limit"], ...NOT_WHOLE] as never,
    [["query", "offset"], "greater_than_equal", "Input should be greater than or equal to 0"],
  ],
  [
    "GET",
    "/v2/deployments?remote_reconciled=maybe",
    undefined,
    [["query", "remote_reconciled"], "bool_parsing", "Input should be a valid boolean, unable to interpret input"],
  ],
  [
    "GET",
    "/v2/deployments?deployment_type=big",
    undefined,
    [["query", "deployment_type"], "enum", "Input should be 'dev_free', 'dev_zero', 'dev' or 'prod'"],
  ],
  ["POST", "/v2/deployments", undefined, [["body"], "missing", "Field required"]],
  [
    "POST",
    "/v2/deployments",
    {},
    ...["name", "source", "source_config", "source_revision_config"].map(
      (field) => [["body", field], "missing", "Field required"] as never,
    ),
  ],
  [
    "POST",
    "/v2/deployments",
    [],
    [["body"], "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"],
  ],
  [
    "POST",
    "/v2/deployments",
    ofImage({ name: "" }),
    [["body", "name"], "string_too_short", "String should have at least 1 character"],
  ],
  [
    "POST",
    "/v2/deployments",
    ofImage({ name: 5 }),
    [["body", "name"], "string_type", "Input should be a valid string"],
  ],
  ["POST", "/v2/deployments", ofImage({ source: "gitlab" }), [["body", "source"], "enum", SOURCES]],
  ["POST", "/v2/deployments", ofImage({ source: 1 }), [["body", "source"], "enum", SOURCES]],
  [
    "POST",
    "/v2/deployments",
    ofImage({ source_config: null }),
    [
      ["body", "source_config"],
      "model_attributes_type",
      "Input should be a valid dictionary or object to extract fields from",
    ],
  ],
  [
    "POST",
    "/v2/deployments",
    ofImage({ secrets: {} }),
    [["body", "secrets"], "list_type", "Input should be a valid list"],
  ],
  [
    "POST",
    "/v2/deployments",
    ofImage({ secrets: [{}] }),
    [["body", "secrets", 0, "name"], "missing", "Field required"],
    [["body", "secrets", 0, "value"], "missing", "Field required"],
  ],
  [
    "POST",
    "/v2/deployments",
    ofImage({ secret_references: [{ name: "a", secret_name: "b" }] }),
    [["body", "secret_references", 0, "secret_key"], "missing", "Field required"],
  ],
  [
    "POST",
    "/v2/deployments",
    ofImage({ source_config: { listener_id: "x" } }),
    [["body", "source_config", "listener_id"], "uuid_parsing", expect.stringContaining("Input should be a valid UUID")],
  ] as never,
  [
    "POST",
    "/v2/deployments",
    spec({ cpu: 8.5 }),
    [inSpec("cpu"), "less_than_equal", "Input should be less than or equal to 8"],
  ],
  [
    "POST",
    "/v2/deployments",
    spec({ cpu: 0.05 }),
    [inSpec("cpu"), "greater_than_equal", "Input should be greater than or equal to 0.1"],
  ],
  [
    "POST",
    "/v2/deployments",
    spec({ cpu_limit: 16.5 }),
    [inSpec("cpu_limit"), "less_than_equal", "Input should be less than or equal to 16"],
  ],
  [
    "POST",
    "/v2/deployments",
    spec({ cpu: "many" }),
    [inSpec("cpu"), "float_parsing", "Input should be a valid number, unable to parse string as a number"],
  ],
  ["POST", "/v2/deployments", spec({ cpu: [] }), [inSpec("cpu"), "float_type", "Input should be a valid number"]],
  [
    "POST",
    "/v2/deployments",
    spec({ memory_mb: 1.5 }),
    [inSpec("memory_mb"), "int_from_float", "Input should be a valid integer, got a number with a fractional part"],
  ],
  [
    "POST",
    "/v2/deployments",
    spec({ labels: { a: 1 } }),
    [[...inSpec("labels"), "a"], "string_type", "Input should be a valid string"],
  ],
  [
    "POST",
    "/v2/deployments",
    spec({ sidecars: [{ name: "a" }] }),
    [[...inSpec("sidecars"), 0, "image"], "missing", "Field required"],
  ],
  ["DELETE", "/v2/deployments", undefined, [["query", "deployment_ids"], "missing", "Field required"]],
  [
    "DELETE",
    `/v2/deployments?deployment_ids=${UNKNOWN_ID}&deployment_ids=x`,
    undefined,
    [["query", "deployment_ids", 1], "uuid_parsing", "Input should be a valid UUID, invalid character: found `x` at 1"],
  ],
  ["GET", "/v2/deployments/1", undefined, [["path", "deployment_id"], "uuid_parsing", TOO_SHORT]],
  [
    "PATCH",
    "/v2/deployments/1",
    undefined,
    [["path", "deployment_id"], "uuid_parsing", TOO_SHORT],
    [["body"], "missing", "Field required"],
  ],
  [
    "PATCH",
    `/v2/deployments/${UNKNOWN_ID}`,
    { revision_source: "external_docker" },
    [["body", "revision_source"], "enum", "Input should be 'github', 'internal_docker' or 'internal_source'"],
  ],
  [
    "DELETE",
    "/v2/deployments/1?force=perhaps",
    undefined,
    [["path", "deployment_id"], "uuid_parsing", TOO_SHORT],
    [["query", "force"], "bool_parsing", "Input should be a valid boolean, unable to interpret input"],
  ],
  [
    "GET",
    `/v2/deployments/${UNKNOWN_ID}/revisions?limit=101`,
    undefined,
    [["query", "limit"], "less_than_equal", "Input should be less than or equal to 100"],
  ],
  [
    "POST",
    `/v2/deployments/${UNKNOWN_ID}/revisions`,
    { secrets: 1 },
    [["body", "secrets"], "list_type", "Input should be a valid list"],
  ],
  ["GET", `/v2/deployments/${UNKNOWN_ID}/revisions/1`, undefined, [["path", "revision_id"], "uuid_parsing", TOO_SHORT]],
  [
    "POST",
    `/v2/deployments/1/revisions/1/redeploy`,
    undefined,
    [["path", "deployment_id"], "uuid_parsing", TOO_SHORT],
    [["path", "revision_id"], "uuid_parsing", TOO_SHORT],
  ],
  [
    "POST",
    `/v2/deployments/${UNKNOWN_ID}/revisions/1/interrupt`,
    undefined,
    [["path", "revision_id"], "uuid_parsing", TOO_SHORT],
  ],
  ["GET", LOGS, undefined, [["query", "type"], "missing", "Field required"]],
  [
    "GET",
    `${LOGS}?type=run&order=up&limit=1001&level=LOUD`,
    undefined,
    [["query", "type"], "enum", "Input should be 'build' or 'deploy'"],
    [["query", "level"], "enum", "Input should be 'DEBUG', 'INFO', 'WARNING', 'ERROR' or 'CRITICAL'"],
    [["query", "order"], "enum", "Input should be 'asc' or 'desc'"],
    [["query", "limit"], "less_than_equal", "Input should be less than or equal to 1000"],
  ],
  [
    "GET",
    `${LOGS}?type=build&start_time=now`,
    undefined,
    [
      ["query", "start_time"],
      "datetime_from_date_parsing",
      "Input should be a valid datetime or date, input is too short",
    ],
  ],
  ["GET", "/v2/deployment-logs", undefined, [["query", "deployment_id"], "missing", "Field required"]],
  [
    "GET",
    `/v2/deployment-logs?deployment_id=${UNKNOWN_ID}&page_size=101&log_type=build`,
    undefined,
    [["query", "log_type"], "enum", "Input should be 'BUILD' or 'DEPLOY'"],
    [["query", "page_size"], "less_than_equal", "Input should be less than or equal to 100"],
  ],
  [
    "POST",
    `/v1/projects/${UNKNOWN_ID}/deploy_logs`,
    { order: "up" },
    [["body", "order"], "enum", "Input should be 'asc' or 'desc'"],
  ],
  [
    "POST",
    `/v1/projects/${UNKNOWN_ID}/deploy_logs`,
    { start_time: [] },
    [["body", "start_time"], "datetime_type", "Input should be a valid datetime"],
  ],
  [
    "POST",
    "/v2/listeners",
    {},
    ...["compute_type", "compute_id", "compute_config"].map(
      (field) => [["body", field], "missing", "Field required"] as never,
    ),
  ],
  [
    "POST",
    "/v2/listeners",
    { compute_type: "vm", compute_id: "c", compute_config: {} },
    [["body", "compute_type"], "literal_error", "Input should be 'k8s'"],
  ],
  ["GET", "/v2/listeners/1", undefined, [["path", "listener_id"], "uuid_parsing", TOO_SHORT]],
  ["GET", "/v1/integrations/github/1/repos", undefined, [["path", "integration_id"], "uuid_parsing", TOO_SHORT]],
];

describe.each(databases)("requests that the control plane refuses on %s", (database) => {
  let api: ControlApi;
  let ada: User;
  beforeAll(async () => {
    api = await ControlApi.start(database);
    ada = await api.user();
  });
  afterAll(() => api.stop());

  it.each(CASES.map((one) => [one[0], one[1], JSON.stringify(one[2])?.slice(0, 80) ?? "nothing", one] as const))(
    "%s %s with %s returns an error for each place",
    async (_method, _path, _shown, [method, path, body, ...reasons]) => {
      for (const mount of ["", "/api-host"]) {
        const answer = await ada.send(method, `${mount}${path}`, body);
        expect(answer.status).toBe(422);
        expect(answer.body.detail.map(({ loc, type, msg }: Wire) => [loc, type, msg])).toEqual(reasons);
      }
    },
  );

  it("a body that is not JSON", async () => {
    const answer = await ada.send("POST", "/v2/deployments", '{"name": ');
    expect([answer.status, answer.body.detail]).toMatchObject([
      422,
      [{ type: "json_invalid", msg: "JSON decode error" }],
    ]);
  });

  it("another method, and an unknown path, in FastAPI's words", async () => {
    for (const path of [
      "/v2/deployments",
      `/v2/deployments/${UNKNOWN_ID}/upload-url`,
      "/v1/integrations/github/install",
    ]) {
      const answer = await ada.send("PUT", path, {});
      expect([path, answer.status, answer.body]).toEqual([path, 405, { detail: "Method Not Allowed" }]);
    }
    for (const path of ["/v2/deployment", "/v1/projects/x", "/api-host/v2/nothing", "/v2/uploads/x"]) {
      const answer = await ada.send("GET", path);
      expect([path, answer.status, answer.body]).toEqual([path, 404, { detail: "Not Found" }]);
    }
  });

  it("callers without a key, or without the scope, before anything else", async () => {
    const stranger = await api.user(undefined, ["agents"]);
    for (const { method, path } of Object.values(controlRoutes).flatMap((group) => Object.values(group))) {
      const at = path.replaceAll(/\{\w+\}/g, "x");
      expect([at, (await api.service.request(method.toUpperCase(), at)).status]).toEqual([at, 401]);
      const answer = await stranger.send(method.toUpperCase(), at);
      expect([at, answer.status, answer.body.detail]).toEqual([at, 403, expect.stringContaining("deployments")]);
    }
  });

  it("is in the document of the control plane, with the operation ids of FastAPI", async () => {
    const document = await ada.call("GET", "/v2/openapi.json");
    expect([document.openapi, document.info.version]).toEqual(["3.1.0", "0.1.0"]);
    const operations = Object.entries<Wire>(document.paths).flatMap(([path, methods]) =>
      Object.entries<Wire>(methods).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
    );
    for (const line of [
      "post /v2/deployments create_deployment_v2_deployments_post",
      "get /v2/deployments/{deployment_id} get_deployment_v2_deployments__deployment_id__get",
      "delete /v2/auth/tokens delete_oauth_tokens_for_user_v2_auth_tokens_delete",
    ])
      expect(operations).toContain(line);
    expect(new Set(operations.map((line) => line.split(" ")[2])).size).toBe(operations.length);
    const { Deployment, Revision, DeploymentCreateRequest } = document.components.schemas;
    expect(Object.keys(Deployment.properties).sort()).toEqual([...DEPLOYMENT_FIELDS].sort());
    expect(Object.keys(Revision.properties).sort()).toEqual([...REVISION_FIELDS].sort());
    expect(DeploymentCreateRequest.required).toEqual(["name", "source", "source_config", "source_revision_config"]);
    expect(document.paths["/v2/deployments"].post.security).toEqual([
      { "API Key": [] },
      { "Tenant ID": [] },
      { "Bearer Auth": [] },
    ]);
    expect(await ada.call("GET", "/api-host/openapi.json")).toEqual(document);
  });
});
