import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuthServiceApi, provider, type Wire } from "./api.ts";

const AUTH = "Auth Service (v2)";
const CONNECTIONS = "Agent Connections (v2)";

/** Ids as the published document has them, with their statuses of success. */
const OPERATIONS: [method: string, path: string, id: string, tag: string, status: string][] = [
  ["get", "/providers", "list_oauth_providers_v2_auth_providers_get", AUTH, "200"],
  ["post", "/providers", "create_oauth_provider_v2_auth_providers_post", AUTH, "200"],
  ["get", "/providers/{provider_id}", "get_oauth_provider_v2_auth_providers__provider_id__get", AUTH, "200"],
  ["patch", "/providers/{provider_id}", "update_oauth_provider_v2_auth_providers__provider_id__patch", AUTH, "200"],
  ["delete", "/providers/{provider_id}", "delete_oauth_provider_v2_auth_providers__provider_id__delete", AUTH, "200"],
  ["get", "/platform-providers", "list_platform_oauth_providers_v2_auth_platform_providers_get", AUTH, "200"],
  ["get", "/tokens", "list_oauth_tokens_for_user_v2_auth_tokens_get", AUTH, "200"],
  ["delete", "/tokens", "delete_oauth_tokens_for_user_v2_auth_tokens_delete", AUTH, "200"],
  ["get", "/tokens/exists", "check_oauth_token_exists_v2_auth_tokens_exists_get", AUTH, "200"],
  ["post", "/tokens/exists/batch", "check_oauth_tokens_exist_batch_v2_auth_tokens_exists_batch_post", AUTH, "200"],
  ["post", "/tokens/import", "import_oauth_token_v2_auth_tokens_import_post", AUTH, "200"],
  ["patch", "/tokens/{token_id}/metadata", "update_token_label_v2_auth_tokens__token_id__metadata_patch", AUTH, "200"],
  ["delete", "/tokens/{token_id}", "delete_single_oauth_token_v2_auth_tokens__token_id__delete", AUTH, "204"],
  ["get", "/token-events", "list_token_events_for_user_v2_auth_token_events_get", AUTH, "200"],
  [
    "get",
    "/agents/{agent_id}/connections",
    "list_connections_v2_auth_agents__agent_id__connections_get",
    CONNECTIONS,
    "200",
  ],
  [
    "post",
    "/agents/{agent_id}/connections",
    "create_connection_v2_auth_agents__agent_id__connections_post",
    CONNECTIONS,
    "201",
  ],
  [
    "delete",
    "/agents/{agent_id}/connections/{connection_id}",
    "remove_connection_v2_auth_agents__agent_id__connections__connection_id__delete",
    CONNECTIONS,
    "204",
  ],
  [
    "post",
    "/agents/{agent_id}/providers/{provider_id}/tokens",
    "upsert_agent_provider_token_v2_auth_agents__agent_id__providers__provider_id__tokens_post",
    CONNECTIONS,
    "201",
  ],
];

describe("the document of the Auth Service", () => {
  let api: AuthServiceApi;
  let document: Wire;
  beforeAll(async () => {
    api = await AuthServiceApi.start("sqlite");
    document = (await read("/v2/openapi.json")).body;
  });
  afterAll(() => api.stop());

  const read = async (path: string) => {
    const headers = { "X-Api-Key": await api.newKey("reader") };
    return api.service.request("GET", path, undefined, headers);
  };

  it("is there at both mounts, as OpenAPI 3.1.0 of version 0.1.0", async () => {
    expect([document.openapi, document.info.version]).toEqual(["3.1.0", "0.1.0"]);
    for (const path of ["/api-host/openapi.json", "/api-host/v2/openapi.json"])
      expect((await read(path)).body).toEqual(document);
  });

  it.each(OPERATIONS)("describes %s %s as %s", (method, path, operationId, tag, status) => {
    const operation = document.paths[`/v2/auth${path}`][method];
    expect(operation).toMatchObject({
      operationId,
      tags: [tag],
      security: [{ "API Key": [] }, { "Tenant ID": [] }, { "Bearer Auth": [] }],
    });
    expect(operation.responses).toHaveProperty([status]);
    const takes = operation.requestBody !== undefined || (operation.parameters ?? []).length > 0;
    if (takes)
      expect(operation.responses["422"].content["application/json"].schema).toEqual({
        $ref: "#/components/schemas/HTTPValidationError",
      });
  });

  it("gives each operation an id of its own", () => {
    const ids = Object.values(document.paths).flatMap((path) =>
      Object.values(path as object).map((o) => o.operationId),
    );
    expect(ids.length).toBeGreaterThanOrEqual(OPERATIONS.length);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("describes the three authentication schemes, and the body of a 422", () => {
    expect(document.components.securitySchemes).toEqual({
      "API Key": { type: "apiKey", in: "header", name: "X-Api-Key" },
      "Tenant ID": { type: "apiKey", in: "header", name: "X-Tenant-Id" },
      "Bearer Auth": { type: "http", scheme: "bearer" },
    });
    expect(document.components.schemas.ValidationError).toMatchObject({
      type: "object",
      required: ["loc", "msg", "type"],
    });
    expect(document.components.schemas.HTTPValidationError.properties.detail).toEqual({
      type: "array",
      items: { $ref: "#/components/schemas/ValidationError" },
    });
  });

  it("describes the parameters and responses of DELETE /v2/auth/tokens", () => {
    const { parameters, responses } = document.paths["/v2/auth/tokens"].delete;
    expect(parameters).toMatchObject([
      { name: "provider_id", in: "query", required: true, schema: { type: "string" } },
    ]);
    const { $ref } = responses["200"].content["application/json"].schema;
    expect(document.components.schemas[$ref.split("/").at(-1)]).toMatchObject({
      required: ["message", "provider_id"],
      properties: { message: { type: "string" }, provider_id: { type: "string" } },
    });
  });

  it("marks required fields, and states the defaults of the others", () => {
    const { OAuthProviderCreateRequest: create, OAuthTokenImportRequest: token } = document.components.schemas;
    expect(create.required).toEqual(["provider_id", "name", "client_id", "auth_url", "token_url"]);
    expect(create.properties).toMatchObject({
      uses_pkce: { type: "boolean", default: true },
      code_challenge_method: { default: "S256" },
      token_endpoint_auth_method: {
        type: "string",
        enum: ["none", "client_secret_basic", "client_secret_post"],
        default: "client_secret_post",
      },
    });
    expect(token.required).toEqual(["provider_id", "access_token"]);
    expect(token.properties.is_default).toMatchObject({ type: "boolean", default: true });
    expect(document.components.schemas.OAuthProviderResponse.properties).not.toHaveProperty("client_secret");
    const limit = document.paths["/v2/auth/token-events"].get.parameters.find(({ name }: Wire) => name === "limit");
    expect(limit).toMatchObject({
      required: false,
      schema: { type: "integer", minimum: 1, maximum: 200, default: 50 },
    });
  });
});

describe("the Auth Service below /api-host", () => {
  it("is the same one", async () => {
    const api = await AuthServiceApi.start("sqlite");
    const here = await api.user("ada");
    const there = await api.user("ada", undefined, "/api-host");
    const made = await there.call("POST", "/providers", provider("github"));
    expect(await here.call("GET", "/providers/github")).toEqual(made);
    const { token_id } = await there.call("POST", "/tokens/import", { provider_id: "github", access_token: "t" });
    expect((await here.call("GET", "/tokens"))[0].id).toBe(token_id);
    expect((await there.send("DELETE", "/tokens")).body).toEqual({
      detail: [{ type: "missing", loc: ["query", "provider_id"], msg: "Field required", input: null }],
    });
    expect((await there.send("PUT", "/tokens")).status).toBe(405);
    expect((await there.send("GET", "/nowhere")).body).toEqual({ detail: "Not Found" });
    await there.call("DELETE", "/tokens?provider_id=github");
    expect(await here.call("GET", "/tokens")).toEqual([]);
    await api.stop();
  });
});
