import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

const AGENT = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
const CHAT = "eb6db400-e3c8-5d06-a834-015cb89efe69";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}\+00:00$/;

describe.each(databases)("assistants on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, {
      LANGGRAPH_CONFIG: '{"chat": {"configurable": {"tone": "dry"}, "context": {"team": "ops"}}}',
    });
  });
  afterAll(() => api.stop());

  const create = (body: object = {}): Promise<Wire> => api.post("/assistants", { graph_id: "chain", ...body });
  const path = ({ assistant_id }: Wire) => `/assistants/${assistant_id}`;

  describe("default assistants", () => {
    it.each([
      ["agent", AGENT, { description: "Three steps, one after the other.", config: {}, context: {} }],
      ["chat", CHAT, { description: null, config: { configurable: { tone: "dry" } }, context: { team: "ops" } }],
    ])(
      "%s has the id that clients compute, and what the operator configured",
      async (graph_id, assistant_id, configured) => {
        const found = await api.get(`/assistants/${assistant_id}`);
        const fixed = { assistant_id, graph_id, name: graph_id, metadata: { created_by: "system" }, version: 1 };
        expect(found).toEqual({
          ...fixed,
          ...configured,
          created_at: expect.stringMatching(TIME),
          updated_at: expect.stringMatching(TIME),
        });
      },
    );

    it.each([
      ["GET", ""],
      ["GET", "/graph"],
      ["GET", "/schemas"],
      ["GET", "/subgraphs"],
      ["POST", "/versions"],
    ] as const)("can be addressed by their graph's name in %s /assistants/{name}%s", async (method, rest) => {
      expect(await api.call(method, `/assistants/agent${rest}`)).toEqual(
        await api.call(method, `/assistants/${AGENT}${rest}`),
      );
    });

    it.each([AGENT, "agent"])("cannot be deleted as %s", async (id) => {
      const { status, body } = await api.send("DELETE", `/assistants/${id}`);
      expect(status).toBe(409);
      expect(body.detail).toContain("default assistant");
      expect((await api.get("/assistants/agent")).graph_id).toBe("agent");
    });
  });

  it("a new assistant has every field, none of them null but the description", async () => {
    const created = await create();
    expect(created).toEqual({
      assistant_id: expect.stringMatching(UUID),
      graph_id: "chain",
      name: "Untitled",
      description: null,
      config: {},
      context: {},
      metadata: {},
      version: 1,
      created_at: expect.stringMatching(TIME),
      updated_at: expect.stringMatching(TIME),
    });
    expect(await api.get(path(created))).toEqual(created);
  });

  it("keeps the values that it was created with, and treats null as missing", async () => {
    const fields = {
      name: "Ada",
      description: "Counts.",
      config: { tags: ["x"], configurable: { k: [1] } },
      context: { user: { id: 1 } },
      metadata: { team: "blue" },
    };
    expect(await create(fields)).toMatchObject(fields);
    expect(
      await create({
        config: null,
        context: null,
        metadata: null,
        name: null,
        description: null,
        assistant_id: null,
        if_exists: null,
      }),
    ).toMatchObject({ config: {}, name: "Untitled" });
  });

  it("a taken id is a conflict, or with do_nothing the assistant that has it, unchanged", async () => {
    const assistant_id = randomUUID();
    const first = await create({ assistant_id: assistant_id.toUpperCase(), name: "first" });
    expect(first.assistant_id).toBe(assistant_id);
    const again = await api.send("POST", "/assistants", { graph_id: "chain", assistant_id, name: "second" });
    expect(again).toMatchObject({ status: 409, body: { detail: "Assistant already exists" } });
    expect(await create({ assistant_id, name: "second", if_exists: "do_nothing" })).toEqual(first);
  });

  it("needs a graph that is deployed and loads", async () => {
    const unknown = await api.send("POST", "/assistants", { graph_id: "nope" });
    expect(unknown.status).toBe(404);
    expect(unknown.body.detail).toContain('"nope"');
    await api.service.threadmill.loaded;
    const broken = await api.send("POST", "/assistants", { graph_id: "broken" });
    expect(broken).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining("RangeError: this graph is broken on purpose") },
    });
  });

  describe("changing one", () => {
    it("merges metadata key by key and replaces config and context", async () => {
      const before = await create({
        config: { tags: ["old"], configurable: { a: 1 } },
        context: { a: 1 },
        metadata: { a: { x: 1 }, b: 2 },
      });
      const patch = {
        config: { configurable: { b: 2 } },
        context: { b: 2 },
        metadata: { a: { y: 2 }, c: 3 },
        name: "New",
        description: "d",
        graph_id: "loop",
      };
      const after = await api.call("PATCH", path(before), patch);
      expect(after).toMatchObject({ ...patch, version: 2, created_at: before.created_at });
      expect(after.config).toEqual({ configurable: { b: 2 } });
      expect(after.metadata).toEqual({ a: { y: 2 }, b: 2, c: 3 });
      expect(await api.get(path(before))).toEqual(after);
    });

    it("makes a new version with an empty body too", async () => {
      const before = await create({ metadata: { a: 1 } });
      for (const version of [2, 3]) {
        const { version: seen, updated_at, ...rest } = await api.call("PATCH", path(before), {});
        expect({ ...rest, version: 1, updated_at: before.updated_at }).toEqual(before);
        expect(seen).toBe(version);
        expect(updated_at >= before.updated_at).toBe(true);
      }
    });

    it("to an unknown graph changes nothing", async () => {
      const before = await create();
      expect((await api.send("PATCH", path(before), { graph_id: "nope", name: "n" })).status).toBe(404);
      expect(await api.get(path(before))).toEqual(before);
    });
  });

  describe("versions", () => {
    const threeVersions = async () => {
      const one = await create({
        name: "one",
        description: "1",
        config: { tags: ["1"] },
        context: { n: 1 },
        metadata: { n: 1, odd: true },
      });
      await api.call("PATCH", path(one), {
        name: "two",
        description: "2",
        config: { tags: ["2"] },
        context: { n: 2 },
        metadata: { n: 2, odd: false },
      });
      await api.call("PATCH", path(one), { name: "three", metadata: { n: 3, odd: true } });
      return one;
    };

    it("are listed newest first, by page and by metadata", async () => {
      const one = await threeVersions();
      const list = async (body?: object): Promise<number[]> =>
        (await api.post(`${path(one)}/versions`, body)).map((v: Wire) => v.version);
      expect(await list()).toEqual([3, 2, 1]);
      expect(await list({ limit: 1, offset: 1 })).toEqual([2]);
      expect(await list({ metadata: { odd: true } })).toEqual([3, 1]);
      const { updated_at: _, ...first } = one;
      expect((await api.post(`${path(one)}/versions`, { offset: 2 }))[0]).toEqual({
        ...first,
        created_at: expect.stringMatching(TIME),
      });
    });

    it.each([
      ["the body", (version: number) => ["", { version }]],
      ["the query", (version: number) => [`?version=${version}`, undefined]],
    ] as const)(
      "an earlier one is restored completely, named in %s; the next change gets the highest number plus one",
      async (_, how) => {
        const one = await threeVersions();
        const [query, body] = how(1);
        const restored = await api.post(`${path(one)}/latest${query}`, body);
        expect(restored).toEqual({ ...one, updated_at: expect.stringMatching(TIME) });
        expect(await api.get(path(one))).toEqual(restored);
        expect((await api.call("PATCH", path(one), {})).version).toBe(4);
      },
    );

    it("that does not exist is 404, and a missing version number 422", async () => {
      const one = await create();
      expect((await api.send("POST", `${path(one)}/latest`, { version: 9 })).body.detail).toContain("no version 9");
      expect((await api.send("POST", `${path(one)}/latest`, { version: 9 })).status).toBe(404);
      expect((await api.send("POST", `${path(one)}/latest`, {})).status).toBe(422);
    });
  });

  describe("deleting one", () => {
    it("leaves nothing of it", async () => {
      const deleted = await create();
      expect(await api.send("DELETE", path(deleted))).toMatchObject({ status: 204, text: "" });
      const calls = [
        ["GET", ""],
        ["PATCH", ""],
        ["DELETE", ""],
        ["GET", "/graph"],
        ["GET", "/schemas"],
        ["GET", "/subgraphs"],
        ["POST", "/versions"],
        ["POST", "/latest"],
      ] as const;
      for (const [method, rest] of calls) {
        const body = method === "POST" ? { version: 1 } : method === "PATCH" ? {} : undefined;
        expect(await api.send(method, path(deleted) + rest, body)).toMatchObject({
          status: 404,
          body: { detail: "Assistant not found" },
        });
      }
    });

    it("stops its runs and keeps its threads, unless delete_threads is requested", async () => {
      for (const [query, status] of [
        ["", 200],
        ["?delete_threads=true", 404],
      ] as const) {
        const { assistant_id } = await create({ graph_id: "slow" });
        const thread_id = await api.newThread();
        const other = await api.newThread({ metadata: { assistant_id: UNKNOWN_ID } });
        const run = await api.runningSlow(thread_id, null, { assistant_id });
        await api.send("DELETE", `/assistants/${assistant_id}${query}`);
        expect((await api.send("GET", `/threads/${thread_id}`)).status).toBe(status);
        expect((await api.send("GET", `/threads/${other}`)).status).toBe(200);
        if (status === 200)
          await until("the run has stopped", async () => (await api.run(run)).status === "interrupted");
      }
    });
  });
});
