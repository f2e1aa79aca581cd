import { z } from "@hono/zod-openapi";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { time } from "../../../src/experiments/contract/fields.ts";
import { laxUuid } from "../../../src/platform/contract/lax-fields.ts";
import { invalidParts } from "../../../src/platform/contract/validation-errors.ts";
import { databases } from "../../support/databases.ts";
import { AuthServiceApi, provider, type User } from "./api.ts";

// What is expected was measured with FastAPI's validation (pydantic 2.13.4) and Python's JSON decoder (3.11).

const UUID = "Input should be a valid UUID, ";
const URLS = { auth_url: "https://x.example.com/a", token_url: "https://x.example.com/t" };
const MISSING = { type: "missing", msg: "Field required" };
const NO_INT = "Input should be a valid integer, unable to parse string as an integer";
const NO_BOOLEAN = "Input should be a valid boolean, unable to interpret input";
const TYPES = "'microsoft', 'salesforce' or 'slack'";
const METHODS = "'none', 'client_secret_basic' or 'client_secret_post'";

type Case = [what: string, method: string, path: string, body: unknown, detail: unknown[]];

const missing = (loc: unknown[], input: unknown) => ({ ...MISSING, loc, input });

const CASES: Case[] = [
  ["a query parameter that is missing", "DELETE", "/tokens", undefined, [missing(["query", "provider_id"], null)]],
  ["... beside others", "GET", "/tokens/exists?provider=x", undefined, [missing(["query", "provider_id"], null)]],
  [
    "a text that is no number",
    "GET",
    "/token-events?limit=many",
    undefined,
    [{ type: "int_parsing", loc: ["query", "limit"], msg: NO_INT, input: "many" }],
  ],
  [
    "an empty text that is no number",
    "GET",
    "/token-events?limit=",
    undefined,
    [{ type: "int_parsing", loc: ["query", "limit"], msg: NO_INT, input: "" }],
  ],
  [
    "the last of several numbers",
    "GET",
    "/token-events?limit=5&limit=1.5",
    undefined,
    [{ type: "int_parsing", loc: ["query", "limit"], msg: NO_INT, input: "1.5" }],
  ],
  [
    "a number that is too small",
    "GET",
    "/token-events?limit=0",
    undefined,
    [
      {
        type: "greater_than_equal",
        loc: ["query", "limit"],
        msg: "Input should be greater than or equal to 1",
        input: "0",
        ctx: { ge: 1 },
      },
    ],
  ],
  [
    "a number that is too large",
    "GET",
    "/token-events?limit=201",
    undefined,
    [
      {
        type: "less_than_equal",
        loc: ["query", "limit"],
        msg: "Input should be less than or equal to 200",
        input: "201",
        ctx: { le: 200 },
      },
    ],
  ],
  ["no body", "POST", "/providers", undefined, [missing(["body"], null)]],
  ["an empty body", "POST", "/providers", "", [missing(["body"], null)]],
  ["null for a body", "POST", "/providers", "null", [missing(["body"], null)]],
  [
    "a list for a body",
    "POST",
    "/tokens/exists/batch",
    "[1]",
    [
      {
        type: "model_attributes_type",
        loc: ["body"],
        msg: "Input should be a valid dictionary or object to extract fields from",
        input: [1],
      },
    ],
  ],
  [
    "a text for a body",
    "POST",
    "/tokens/import",
    '"text"',
    [
      {
        type: "model_attributes_type",
        loc: ["body"],
        msg: "Input should be a valid dictionary or object to extract fields from",
        input: "text",
      },
    ],
  ],
  [
    "fields that are missing, all at once and in their order",
    "POST",
    "/providers",
    { token_url: "https://x.example.com/t", extra: 1 },
    ["provider_id", "name", "client_id", "auth_url"].map((field) =>
      missing(["body", field], { token_url: "https://x.example.com/t", extra: 1 }),
    ),
  ],
  [
    "a field that is missing in an object with secrets",
    "POST",
    "/tokens/import",
    { access_token: "canary", refresh_token: "canary", metadata: { client_secret: "canary" } },
    [
      missing(["body", "provider_id"], {
        access_token: "**********",
        refresh_token: "**********",
        metadata: { client_secret: "**********" },
      }),
    ],
  ],
  [
    "a secret that is no text",
    "POST",
    "/tokens/import",
    { provider_id: "x", access_token: ["canary"] },
    [
      {
        type: "string_type",
        loc: ["body", "access_token"],
        msg: "Input should be a valid string",
        input: "**********",
      },
    ],
  ],
  [
    "a field that is missing in a large object, which is not repeated",
    "POST",
    "/tokens/import",
    { access_token: "x", metadata: { large: "x".repeat(1000) } },
    [{ ...MISSING, loc: ["body", "provider_id"] }],
  ],
  [
    "numbers, null and lists that are no text",
    "POST",
    "/providers",
    { ...URLS, provider_id: 1, name: null, client_id: ["x"] },
    [
      { type: "string_type", loc: ["body", "provider_id"], msg: "Input should be a valid string", input: 1 },
      { type: "string_type", loc: ["body", "name"], msg: "Input should be a valid string", input: null },
      { type: "string_type", loc: ["body", "client_id"], msg: "Input should be a valid string", input: ["x"] },
    ],
  ],
  [
    "one of several texts that is none of them",
    "POST",
    "/providers",
    provider("x", { provider_type: "github", token_endpoint_auth_method: 5 }),
    [
      {
        type: "literal_error",
        loc: ["body", "provider_type"],
        msg: `Input should be ${TYPES}`,
        input: "github",
        ctx: { expected: TYPES },
      },
      {
        type: "literal_error",
        loc: ["body", "token_endpoint_auth_method"],
        msg: `Input should be ${METHODS}`,
        input: 5,
        ctx: { expected: METHODS },
      },
    ],
  ],
  [
    "a text that is no boolean",
    "POST",
    "/providers",
    provider("x", { uses_pkce: "maybe" }),
    [{ type: "bool_parsing", loc: ["body", "uses_pkce"], msg: NO_BOOLEAN, input: "maybe" }],
  ],
  [
    "a number that is no boolean",
    "POST",
    "/providers",
    provider("x", { uses_pkce: 2 }),
    [{ type: "bool_parsing", loc: ["body", "uses_pkce"], msg: NO_BOOLEAN, input: 2 }],
  ],
  [
    "null that is no boolean",
    "POST",
    "/tokens/import",
    { provider_id: "x", access_token: "t", is_default: null },
    [{ type: "bool_type", loc: ["body", "is_default"], msg: "Input should be a valid boolean", input: null }],
  ],
  [
    "a number with a fraction, a list with other things in it, and what is no object",
    "POST",
    "/tokens/import",
    { provider_id: "x", access_token: "t", expires_in_seconds: 1.5, scopes: ["a", 1, null], metadata: "m" },
    [
      {
        type: "int_from_float",
        loc: ["body", "expires_in_seconds"],
        msg: "Input should be a valid integer, got a number with a fractional part",
        input: 1.5,
      },
      { type: "string_type", loc: ["body", "scopes", 1], msg: "Input should be a valid string", input: 1 },
      { type: "string_type", loc: ["body", "scopes", 2], msg: "Input should be a valid string", input: null },
      { type: "dict_type", loc: ["body", "metadata"], msg: "Input should be a valid dictionary", input: "m" },
    ],
  ],
  [
    "what is no list",
    "POST",
    "/tokens/exists/batch",
    { provider_ids: "github" },
    [{ type: "list_type", loc: ["body", "provider_ids"], msg: "Input should be a valid list", input: "github" }],
  ],
  [
    "a number for which none stands",
    "POST",
    "/tokens/import",
    { provider_id: "x", access_token: "t", expires_in_seconds: {} },
    [{ type: "int_type", loc: ["body", "expires_in_seconds"], msg: "Input should be a valid integer", input: {} }],
  ],
  [
    "a text that is too short, and one that is too long",
    "POST",
    "/providers",
    provider("", { name: "n".repeat(256) }),
    [
      {
        type: "string_too_short",
        loc: ["body", "provider_id"],
        msg: "String should have at least 1 character",
        input: "",
        ctx: { min_length: 1 },
      },
      {
        type: "string_too_long",
        loc: ["body", "name"],
        msg: "String should have at most 255 characters",
        input: "n".repeat(256),
        ctx: { max_length: 255 },
      },
    ],
  ],
  [
    "what is wrong in a PATCH",
    "PATCH",
    "/tokens/whose/metadata",
    { provider_account_label: 1, is_default: [] },
    [
      { type: "string_type", loc: ["body", "provider_account_label"], msg: "Input should be a valid string", input: 1 },
      { type: "bool_type", loc: ["body", "is_default"], msg: "Input should be a valid boolean", input: [] },
    ],
  ],
  [
    "a UUID that is too short",
    "POST",
    "/authenticate",
    { provider: "x", scopes: [], token_id: "abc" },
    [
      {
        type: "uuid_parsing",
        loc: ["body", "token_id"],
        msg: `${UUID}invalid length: expected length 32 for simple format, found 3`,
        input: "abc",
        ctx: { error: "invalid length: expected length 32 for simple format, found 3" },
      },
    ],
  ],
];

/** Bodies that are no JSON: what Python's decoder says, and where. */
const BROKEN: [text: string, error: string, position: number][] = [
  ["{", "Expecting property name enclosed in double quotes", 1],
  ["[", "Expecting value", 1],
  ['{"a":}', "Expecting value", 5],
  ["nope", "Expecting value", 0],
  ['{"a":1}}', "Extra data", 7],
  ['{"a" 1}', "Expecting ':' delimiter", 5],
  ['{"a":1 "b"}', "Expecting ',' delimiter", 7],
  ['{"a":1,}', "Expecting property name enclosed in double quotes", 7],
  ["[1,]", "Expecting value", 3],
  ['"abc', "Unterminated string starting at", 0],
  ['{"a":"b\nc"}', "Invalid control character at", 7],
  ['["\\x"]', "Invalid \\escape", 2],
  ['["\\u12"]', "Invalid \\uXXXX escape", 3],
  ["01", "Extra data", 1],
  [' {"a":\n  nope}', "Expecting value", 9],
  ['{"é😀":x}', "Expecting value", 6],
];

const UUIDS: [text: string, error: string][] = [
  ["", "invalid length: expected length 32 for simple format, found 0"],
  ["12345678-1234-1234-1234-12345678901z", "invalid character: found `z` at 36"],
  ["é", "invalid character: found `é` at 1"],
  ["1234567-1234-1234-1234-123456789012", "invalid group length in group 0: expected 8, found 7"],
  ["12345678-1234-1234-1234-1234567890123", "invalid group length in group 4: expected 12, found 13"],
  ["12345678-1234-1234-123456789012", "invalid group count: expected 5, found 4"],
  ["{abc}", "invalid group count: expected 5, found 1"],
];

describe.each(databases)("a refused request to the Auth Service on %s", (database) => {
  let api: AuthServiceApi;
  let ada: User;
  beforeAll(async () => {
    api = await AuthServiceApi.start(database);
    ada = await api.user("ada");
  });
  afterAll(() => api.stop());

  it.each(CASES)("reports what is wrong: %s (%s %s)", async (_, method, path, body, detail) => {
    const answer = await ada.send(method, path, body);
    expect([answer.status, answer.body]).toEqual([422, { detail }]);
    expect(answer.headers.get("content-type")).toContain("application/json");
  });

  it.each(BROKEN)("reports where a body stops being JSON: %j", async (text, error, position) => {
    const answer = await ada.send("POST", "/providers", text);
    const detail = [
      { type: "json_invalid", loc: ["body", position], msg: "JSON decode error", input: {}, ctx: { error } },
    ];
    expect([answer.status, answer.body]).toEqual([422, { detail }]);
  });

  it("also reports JSON that is refused for its depth or its keys", async () => {
    for (const text of ["[".repeat(200) + "]".repeat(200), '{"__proto__": {"a": 1}}']) {
      const { status, body } = await ada.send("POST", "/providers", text);
      expect([status, body.detail[0]]).toMatchObject([422, { type: "json_invalid", msg: "JSON decode error" }]);
    }
  });

  it.each(["true", "TRUE", "1", "yes", "On", "t", "Y", 1, true])("reads %j as true", async (value) => {
    const id = `true-${typeof value}-${value}`;
    expect((await ada.call("POST", "/providers", provider(id, { uses_pkce: value }))).uses_pkce).toBe(true);
  });

  it.each(["false", "0", "no", "OFF", "f", "n", 0, false])("reads %j as false", async (value) => {
    const id = `false-${typeof value}-${value}`;
    expect((await ada.call("POST", "/providers", provider(id, { uses_pkce: value }))).uses_pkce).toBe(false);
  });

  it.each(["5", " 5 ", "+5", "5.0", "1_0", "007"])("reads %j as a number", async (value) => {
    await ada.call("GET", `/token-events?limit=${encodeURIComponent(value)}`);
  });

  it("requires a key before anything else", async () => {
    const requests = [
      ["DELETE", "/v2/auth/tokens"],
      ["POST", "/v2/auth/providers", "{"],
      ["GET", "/v2/auth/nothing"],
      ["PUT", "/v2/auth/tokens"],
    ] as const;
    for (const [method, path, body] of requests) {
      const answer = await api.service.request(method, path, body);
      expect([answer.status, Object.keys(answer.body)]).toEqual([401, ["detail"]]);
    }
    const onlyWorkspace = { "X-Tenant-Id": ada.tenant_id };
    expect((await api.service.request("DELETE", "/v2/auth/tokens", undefined, onlyWorkspace)).status).toBe(401);
  });

  it.each([
    ["GET", "/nothing"],
    ["POST", "/providers/a/b"],
    ["GET", "/tokens/a/b/c"],
    ["GET", ""],
  ])("is not found at an unknown path: %s %s", async (method, path) => {
    const answer = await ada.send(method, path);
    expect([answer.status, answer.body]).toEqual([404, { detail: "Not Found" }]);
  });

  it.each([
    ["PUT", "/tokens", "GET, DELETE"],
    ["POST", "/tokens/x", "DELETE"],
    ["PATCH", "/providers", "GET, POST"],
    ["GET", "/tokens/import", "POST"],
    ["POST", "/agents/a/connections/b", "DELETE"],
  ])("lists other methods if there are some: %s %s", async (method, path, allow) => {
    const answer = await ada.send(method, path);
    expect([answer.status, answer.body]).toEqual([405, { detail: "Method Not Allowed" }]);
    expect(answer.headers.get("allow")).toBe(allow);
  });
});

describe("the text of an error", () => {
  const partsOf = (schema: z.ZodType, value: unknown) =>
    invalidParts(schema.safeParse(value, { reportInput: true }).error?.issues ?? [], value, ["body"]);

  it.each(UUIDS)("about a UUID: %j", (text, error) => {
    const parts = [{ type: "uuid_parsing", loc: ["body"], msg: `${UUID}${error}`, input: text, ctx: { error } }];
    expect(partsOf(laxUuid, text)).toEqual(parts);
  });

  it("about a UUID that is not text", () => {
    const msg = "UUID input should be a string, bytes or UUID object";
    expect(partsOf(laxUuid, 5)).toEqual([{ type: "uuid_type", loc: ["body"], msg, input: 5 }]);
  });

  it.each([
    "12345678-1234-1234-1234-1234567890AB",
    "123456781234123412341234567890ab",
    "{12345678-1234-1234-1234-1234567890ab}",
    "urn:uuid:12345678-1234-1234-1234-1234567890ab",
  ])("are none for %s", (text) => {
    expect(laxUuid.parse(text)).toBe("12345678-1234-1234-1234-1234567890ab");
  });

  it.each([
    ["x", "input is too short"],
    ["2026-13-01", "month value is outside expected range of 1-12"],
    ["2026-02-31", "day value is outside expected range"],
    ["2026/01/01", "invalid date separator, expected `-`"],
    ["not a date at all", "invalid character in year"],
    ["2026-01-01 nope", "unexpected extra characters at the end of the input"],
  ])("about a time: %j", (text, error) => {
    const msg = `Input should be a valid datetime or date, ${error}`;
    expect(partsOf(time, text)).toEqual([
      { type: "datetime_from_date_parsing", loc: ["body"], msg, input: text, ctx: { error } },
    ]);
  });

  it.each([
    [["a"], "'a'"],
    [["a", "b"], "'a' or 'b'"],
    [["a", "b", "c"], "'a', 'b' or 'c'"],
  ])("about one of %j", (values, expected) => {
    const schema = z.enum(values as [string, ...string[]]);
    expect(partsOf(schema, "x")).toEqual([
      { type: "enum", loc: ["body"], msg: `Input should be ${expected}`, input: "x", ctx: { expected } },
    ]);
  });

  it("about a list that is too long", () => {
    expect(partsOf(z.object({ ids: z.array(z.string()).max(2) }), { ids: ["a", "b", "c"] })).toEqual([
      {
        type: "too_long",
        loc: ["body", "ids"],
        msg: "List should have at most 2 items after validation, not 3",
        input: ["a", "b", "c"],
        ctx: { field_type: "List", max_length: 2, actual_length: 3 },
      },
    ]);
  });
});
