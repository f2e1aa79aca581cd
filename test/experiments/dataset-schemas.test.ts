import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { type Anything, apiOf, plain, unique } from "./query/api.ts";

describe("schemas of a dataset", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());
  const api = apiOf(() => service);

  const datasetOf = async (inputs_schema_definition: object, outputs_schema_definition?: object): Promise<string> =>
    (await api.ok("POST", "/datasets", { name: unique(), inputs_schema_definition, outputs_schema_definition })).id;
  /** The places and messages of a refusal; empty when the example is stored. */
  const faults = ({ status, body }: Anything) =>
    status === 200 ? [] : body.detail.map(({ loc, msg }: Anything) => `${loc.slice(1).join(".")}: ${msg}`);
  const faultsOf = async (schema: object, value: unknown) => {
    const dataset_id = await datasetOf({ type: "object", properties: { v: schema } });
    return faults(await api.send("POST", "/examples", { dataset_id, inputs: { v: value } }));
  };

  it("refuse inputs and outputs that do not match, with each path", async () => {
    const dataset_id = await datasetOf(
      { type: "object", required: ["question"], properties: { question: { type: "string", minLength: 3 } } },
      { type: "object", additionalProperties: { type: "number" } },
    );
    const create = (body: object) =>
      api.send("POST", "/examples/bulk", [
        { dataset_id, inputs: { question: "why?" } },
        { dataset_id, ...body },
      ]);
    expect(faults(await create({ inputs: { question: "a" }, outputs: { a: 1, b: "2" } }))).toEqual([
      `1.inputs.question: Value error, does not satisfy "minLength": 3 (checked against the dataset's inputs_schema_definition)`,
      "1.outputs.b: Value error, is of type string, not number (checked against the dataset's outputs_schema_definition)",
    ]);
    expect(faults(await create({ inputs: {} }))).toEqual([
      expect.stringContaining('is missing the required property "question"'),
    ]);
    expect(await api.get(`/examples/count?dataset=${dataset_id}`)).toBe(0);
    const [example] = (await create({ inputs: { question: "and how?" }, outputs: null })).body;
    const changed = await api.send("PATCH", `/examples/${example.id}`, { outputs: { a: "text" } });
    expect(faults(changed)).toEqual([expect.stringMatching(/\.outputs\.a: Value error, is of type string/)]);
    await api.ok("PATCH", `/datasets/${dataset_id}`, { outputs_schema_definition: null });
    await api.ok("PATCH", `/examples/${example.id}`, { outputs: { a: "text" } });
  });

  const cases: [name: string, schema: object, good: unknown[], bad: unknown[]][] = [
    ["type", { type: ["integer", "null"] }, [1, null, 2.0], [1.5, "1", true, []]],
    ["enum", { enum: [1, { a: [1], b: 2 }] }, [1, { b: 2, a: [1] }], [2, { a: [1] }]],
    ["const", { const: null }, [null], [0, false]],
    ["numbers", { minimum: 0, exclusiveMaximum: 1, multipleOf: 0.1 }, [0, 0.3, 0.7], [-0.1, 1, 0.25]],
    ["texts", { maxLength: 2, pattern: "^[a-zé👍]+$" }, ["é👍", "ab"], ["abc", "A", ""]],
    [
      "lists",
      { items: { type: "number" }, minItems: 1, maxItems: 2, uniqueItems: true },
      [[1], [1, 2]],
      [[], [1, 1], ["a"], [1, 2, 3]],
    ],
    ["tuples", { prefixItems: [{ type: "string" }], items: false }, [["a"], []], [["a", 1], [1]]],
    [
      "contains",
      { contains: { const: 1 }, maxContains: 2 },
      [
        [1, 2],
        [1, 1],
      ],
      [[2], [1, 1, 1]],
    ],
    [
      "objects",
      {
        properties: { a: { type: "number" } },
        patternProperties: { "^x-": true },
        additionalProperties: false,
        maxProperties: 2,
      },
      [{ a: 1, "x-b": 2 }],
      [{ b: 1 }, { a: "1" }, { a: 1, "x-1": 1, "x-2": 1 }],
    ],
    [
      "names",
      { propertyNames: { maxLength: 1 }, dependentRequired: { a: ["b"] } },
      [{ a: 1, b: 1 }, { b: 1 }],
      [{ a: 1 }, { long: 1 }],
    ],
    ["branches", { anyOf: [{ type: "string" }, { minimum: 3 }], not: { const: "no" } }, ["yes", 4], ["no", 2]],
    ["one of", { oneOf: [{ type: "number" }, { type: "integer" }] }, [1.5], [1, "a"]],
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    ["conditions", { if: { type: "string" }, then: { minLength: 1 }, else: { type: "number" } }, ["a", 1], ["", true]],
  ];

  it.each(cases)("follow JSON Schema: %s", async (_, schema, good, bad) => {
    for (const value of good) expect([value, await faultsOf(schema, value)]).toEqual([value, []]);
    for (const value of bad) expect([value, (await faultsOf(schema, value)).length > 0]).toEqual([value, true]);
  });

  it("may refer to themselves, and end with every value", async () => {
    const tree = {
      $defs: {
        tree: {
          type: "object",
          properties: { below: { type: "array", items: { $ref: "#/$defs/tree" } } },
          required: ["n"],
        },
      },
      $ref: "#/$defs/tree",
    };
    const dataset_id = await datasetOf(tree);
    const create = (inputs: object) => api.send("POST", "/examples", { dataset_id, inputs });
    expect(faults(await create({ n: 1, below: [{ n: 2, below: [] }] }))).toEqual([]);
    expect(faults(await create({ n: 1, below: [{ below: [] }] }))[0]).toMatch(
      /inputs\.below\.0: .*is missing the required property "n"/,
    );
    const endless = await datasetOf({
      $defs: { a: { $ref: "#/$defs/b" }, b: { anyOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }] } },
      $ref: "#/$defs/a",
    });
    const answer = await api.send("POST", "/examples", { dataset_id: endless, inputs: {} });
    expect(faults(answer)[0]).toMatch(/takes too long to validate/);
    const denied = await datasetOf({ not: { $ref: "#/not" } });
    expect(faults(await api.send("POST", "/examples", { dataset_id: denied, inputs: {} }))[0]).toMatch(
      /takes too long to validate/,
    );
    const doubled = Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [`s${n}`, { allOf: [1, 2].map(() => ({ $ref: `#/$defs/s${n + 1}` })) }]),
    );
    const exponential = await datasetOf({ $defs: { ...doubled, s40: {} }, $ref: "#/$defs/s0" });
    const started = performance.now();
    expect(faults(await api.send("POST", "/examples", { dataset_id: exponential, inputs: {} }))[0]).toMatch(
      /takes too long to validate/,
    );
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  it("are refused when they are invalid, or need what is not supported", async () => {
    const refusal = async (schema: object) =>
      faults(await api.send("POST", "/datasets", { name: unique(), inputs_schema_definition: schema }))[0];
    expect(await refusal({ type: "text" })).toMatch(
      /inputs_schema_definition\.type: .*must be the name of a type \(null, boolean, .*\) or an array of such names/,
    );
    expect(await refusal({ properties: { a: { pattern: "(?=a)" } } })).toMatch(
      /properties\.a\.pattern: .*not supported/,
    );
    expect(await refusal({ $ref: "https://example.com/message.json" })).toMatch(/other documents are not supported/);
    expect(await refusal({ items: { unevaluatedProperties: false } })).toMatch(
      /"unevaluatedProperties" is not supported/,
    );
    expect(await refusal({ $ref: "#/x-part", "x-part": { required: 5 } })).toMatch(
      /"required" must be an array of strings/,
    );
    expect(await refusal({ properties: { a: { pattern: "(a{500}){500}" } } })).toMatch(/pattern: .*not supported/);
    expect(await refusal({ pattern: "(a{40}){24}(b{40}){24}(c{40}){24}" })).toMatch(
      /its repetition counts are too large/,
    );
    expect(await refusal({ required: "a" })).toMatch(/"required" must be an array of strings/);
    const id = await datasetOf({});
    const patched = await api.send("PATCH", `/datasets/${id}`, { outputs_schema_definition: { minimum: "1" } });
    expect(faults(patched)[0]).toMatch(/outputs_schema_definition\.minimum/);
    const { dataset } = await api.upload(plain(1));
    const managed = await api.send("PATCH", `/datasets/${dataset.id}`, {
      inputs_schema_definition: { type: "object" },
    });
    expect([managed.status, managed.body.detail]).toEqual([400, expect.stringContaining("omit the schemas")]);
  });

  it("and a search for similar examples: that is not offered", async () => {
    const id = await datasetOf({});
    for (const path of ["index", "index/sync", "search"]) {
      const { status, body } = await api.send("POST", `/datasets/${id}/${path}`, {});
      expect([status, body.detail]).toEqual([
        404,
        "Similarity search over the examples of a dataset is not supported. Compute embeddings of the examples with your own model.",
      ]);
    }
  });

  it("and transformations or resource tags: those are refused with a reason", async () => {
    const transformations = [{ path: ["inputs"], transformation_type: "remove_extra_fields" }];
    const create = (body: object) => api.send("POST", "/datasets", { name: unique(), ...body });
    expect(faults(await create({ transformations }))[0]).toMatch(/transformations are not supported/);
    expect(faults(await create({ tag_value_ids: [unique()] }))[0]).toMatch(/resource tags are not supported/);
    expect(faults(await create({ transformations: [], tag_value_ids: null }))).toEqual([]);
  });
});
