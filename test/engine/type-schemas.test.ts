import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TypeSchemas } from "../../src/agent-server/graph-hosts/type-schemas/cache.ts";
import { TypeSchemaReader } from "../../src/agent-server/graph-hosts/type-schemas/reader.ts";
import { createProject, type TestProject } from "../support/project.ts";

const FIXTURES = join(import.meta.dirname, "../graphs/type-schemas");
const TIMEOUT_MS = 60_000;

const schema = (properties: object, required?: string[] | "all", definitions?: object) => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties,
  ...(required && { required: required === "all" ? Object.keys(properties) : required }),
  ...(definitions && { definitions }),
});
const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
const text = { type: "string" };
const number = { type: "number" };
const choice = (...values: string[]) => ({ type: "string", enum: values });

const BaseMessage = expect.objectContaining({ title: "BaseMessage", type: "object", required: ["type", "content"] });
const messages = { type: "array", items: ref("BaseMessage") };
const CHAT = {
  input: schema({ messages }, undefined, { BaseMessage }),
  output: schema({ messages }, "all", { BaseMessage }),
  state: schema({ messages }, "all", { BaseMessage }),
  config: null,
};

const fields = {
  count: { type: "number", description: "How many." },
  choice: { anyOf: [choice("a", "b"), { type: "null" }] },
  mixed: { anyOf: [{ enum: [1, "one"] }, { type: "boolean" }] },
  at: { type: "string", format: "date-time" },
  pair: { type: "array", items: [text, number], minItems: 1, maxItems: 2 },
  rest: { type: "array", items: [text], minItems: 1, additionalItems: number },
  scores: { type: "object", additionalProperties: number },
  id: text,
  picked: { type: "object", properties: { name: text, size: number }, required: ["name"] },
  last: ref("BaseMessage"),
  anything: {},
  untyped: {},
};

const nested = {
  type: "object",
  properties: { callback: {}, symbol: {}, connection: {}, tags: {}, label: text },
  required: ["symbol", "connection", "tags", "label"],
};

const json = (items: object) => ({
  anyOf: expect.arrayContaining([
    text,
    number,
    { type: "array", items },
    { type: "object", additionalProperties: items },
  ]),
});
const recursive = {
  Entry: {
    type: "object",
    description: "A file or a folder.",
    properties: { name: text, children: { type: "array", items: ref("Entry"), description: "Of a folder." } },
    required: ["name"],
  },
  Json: json(ref("Json")),
  Endless: { type: "object", properties: { value: text, next: ref("Endless_2") }, required: ["value"] },
};

/** By export of graphs.ts. */
const EXPECTED: Record<string, Partial<TypeSchemas>> = {
  types: {
    input: schema(fields, undefined, { BaseMessage }),
    state: schema(
      fields,
      Object.keys(fields).filter((name) => name !== "last"),
      { BaseMessage },
    ),
    config: null,
  },
  inexpressible: { input: schema({ callback: {}, nested }), state: schema({ callback: {}, nested }, ["nested"]) },
  recursive: {
    state: schema(
      { root: ref("Entry"), json: ref("Json"), endless: ref("Endless") },
      "all",
      expect.objectContaining(recursive),
    ),
  },
  reduced: {
    input: schema({
      total: { anyOf: [{ type: "null" }, { type: "object", properties: { add: number }, required: ["add"] }] },
    }),
    state: schema({ total: number }, "all"),
  },
  separate: {
    input: schema({ question: text }),
    output: schema({ answer: text }, "all"),
    state: schema({ question: text, answer: text, steps: { type: "array", items: text } }, "all"),
    config: schema({ model: { ...choice("small", "large"), description: "Which model answers." } }, "all"),
  },
  chat: CHAT,
  uncompiled: CHAT,
  promised: CHAT,
  factory: CHAT,
  asyncFactory: CHAT,
  agent: CHAT,
  inDefault: CHAT,
  typedAgent: {
    input: schema({ topic: text }, "all"),
    output: schema({ topic: text }, "all"),
    state: schema({ topic: text }, "all"),
    config: schema({ user: text }, "all"),
  },
  prebuilt: { input: CHAT.input, state: CHAT.state, config: null },
  untyped: { input: null, output: null, state: null, config: null },
};

describe("schemas of types", () => {
  const reader = new TypeSchemaReader({ project_dir: FIXTURES, timeout_ms: TIMEOUT_MS });
  const found: Record<string, TypeSchemas | undefined> = {};
  beforeAll(async () => {
    const names = [...Object.keys(EXPECTED), "missing"];
    const read = (export_name: string) => reader.read({ file: join(FIXTURES, "graphs.ts"), export_name });
    await Promise.all(names.map(async (name) => Object.assign(found, { [name]: await read(name) })));
  });
  afterAll(() => reader.stop());

  it.each(Object.entries(EXPECTED))("%s", (name, expected) => {
    expect(found[name]).toMatchObject(expected);
    for (const [part, value] of Object.entries(expected))
      expect(found[name]?.[part as keyof TypeSchemas]).toEqual(value);
  });

  it("are absent for an export that does not exist", () => {
    expect(found).toHaveProperty("missing", undefined);
  });

  it("are absent for a file that does not exist, or is in another language", async () => {
    expect(await reader.read({ file: join(FIXTURES, "graph.py"), export_name: "graph" })).toBeUndefined();
  });
});

const FILES = {
  "tsconfig.json": '{"compilerOptions": {"paths": {"@lib/*": ["./lib-*"]}, "strict": true}}',
  "lib-one.ts": "export interface Finding { topic: string }",
  "alias.mts": `
import { Annotation, StateGraph } from "@langchain/langgraph";
import { writeFileSync } from "node:fs";
import type { Finding } from "@lib/one";
writeFileSync(new URL("executed", import.meta.url), "");
enum Level { Low = "low", High = "high" }
const State = Annotation.Root({ finding: Annotation<Finding>, level: Annotation<Level> });
export const graph = new StateGraph(State).addNode("a", () => ({})).addEdge("__start__", "a").compile();
`,
  "errors.ts": `
import { Annotation, StateGraph } from "@langchain/langgraph";
import type { Later } from "./later.ts";
const wrong: number = "text";
const State = Annotation.Root({ wrong: Annotation<typeof wrong>, later: Annotation<Later>, none: Annotation<Nonexistent> });
export const graph = new StateGraph(State).addNode("a", () => ({ other: 1 })).addEdge("__start__", "b").compile();
`,
  "plain.mjs": `
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ x: Annotation });
export const graph = new StateGraph(State).addNode("a", () => ({})).addEdge("__start__", "a").compile();
`,
};

describe("a project", () => {
  let project: TestProject;
  let cache_dir: string;
  let reader: TypeSchemaReader;
  beforeAll(() => {
    project = createProject(FILES);
    cache_dir = join(project.folder, "cache", "schemas");
    reader = new TypeSchemaReader({ project_dir: project.folder, timeout_ms: TIMEOUT_MS, cache_dir });
  });
  afterAll(async () => {
    await reader.stop();
    project.drop();
  });

  const read = (file: string, by = reader) => by.read({ file: join(project.folder, file), export_name: "graph" });
  /** Of what such a reader answers nothing is extracted: a worker thread takes longer to start. */
  const hurried = (folder?: string) =>
    new TypeSchemaReader({ project_dir: project.folder, timeout_ms: 1, cache_dir: folder });

  const Finding = { type: "object", properties: { topic: text }, required: ["topic"] };
  const ALIAS = schema({ finding: ref("Finding"), level: choice("low", "high") }, undefined, { Finding });

  it("is read by its tsconfig.json, with errors in it, and in JavaScript", async () => {
    const [alias, errors, plain] = await Promise.all(["alias.mts", "errors.ts", "plain.mjs"].map((file) => read(file)));
    expect(alias?.input).toEqual(ALIAS);
    expect(errors?.input).toEqual(schema({ wrong: number, later: {}, none: {} }));
    expect(plain?.input).toEqual(schema({ x: {} }));
  });

  it("is not executed", () => {
    expect(existsSync(join(project.folder, "executed"))).toBe(false);
  });

  it("is read once as long as nothing changes", async () => {
    expect((await read("alias.mts", hurried(cache_dir)))?.input).toEqual(ALIAS);
  });

  it("has no schemas when they take too long", async () => {
    expect(await read("alias.mts", hurried())).toBeUndefined();
  });

  it("has no schemas when reading is stopped", async () => {
    const stopped = new TypeSchemaReader({ project_dir: project.folder, timeout_ms: TIMEOUT_MS });
    const reads = [read("alias.mts", stopped), read("errors.ts", stopped)];
    await stopped.stop();
    expect(await Promise.all(reads)).toEqual([undefined, undefined]);
  });

  it("is read once for concurrent requests", () => {
    expect(read("alias.mts")).toBe(read("alias.mts"));
  });

  it("is read again when an imported file changes or is created", async () => {
    project.write("lib-one.ts", "export interface Finding { topic: number }");
    project.write("later.ts", "export type Later = string[]");
    const [alias, errors] = await Promise.all(["alias.mts", "errors.ts"].map((file) => read(file)));
    expect(alias?.input).toHaveProperty("definitions.Finding.properties.topic", number);
    expect(errors?.input).toHaveProperty("definitions.Later", { type: "array", items: text });
  });

  it("is read despite a damaged cache", async () => {
    const files = readdirSync(cache_dir);
    expect(files).toHaveLength(3);
    for (const file of files) writeFileSync(join(cache_dir, file), '{"format":');
    expect(await read("alias.mts", hurried(cache_dir))).toBeUndefined();
  });
});
