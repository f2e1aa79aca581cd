import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../../support/databases.ts";
import { AUTH_CONFIG, Scenario, type Wire } from "../scenario.ts";

type Headers = Record<string, string>;
const alice: Headers = { authorization: "Bearer alice" };
const bob: Headers = { authorization: "Bearer bob" };

describe.each(databases)("filters of handlers on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, {}, { config: AUTH_CONFIG });
  });
  afterAll(() => api.stop());

  const newThread = async (body: object): Promise<string> =>
    (await api.call("POST", "/threads", body, alice)).thread_id;
  const statusOf = async (headers: Headers, path: string) => (await api.send("GET", path, undefined, headers)).status;

  it("permit what $or, $contains and $and describe, and a copy belongs to its creator", async () => {
    const shared = await newThread({ metadata: { readers: ["carol", "bob"] } });
    const published = await newThread({ metadata: { public: "yes" } });
    const misleading = await newThread({ metadata: { readers: "bob", public: ["yes"] } });
    expect(await statusOf(bob, `/threads/${shared}`)).toBe(200);
    expect(await statusOf(bob, `/threads/${published}/state`)).toBe(200);
    expect(await statusOf(bob, `/threads/${misleading}`)).toBe(404);
    expect((await api.send("PATCH", `/threads/${shared}`, { metadata: {} }, bob)).status).toBe(404);
    const copy = await api.call("POST", `/threads/${shared}/copy`, {}, bob);
    expect(copy.metadata).toMatchObject({ owner: "bob", readers: ["carol", "bob"] });
    const found: Wire[] = await api.call("POST", "/threads/search", {}, bob);
    expect(found.map(({ thread_id }) => thread_id)).toEqual([copy.thread_id]);
  });

  it("apply to searches, counts and lists", async () => {
    const thread_id = await newThread({});
    const { assistant_id } = await api.call("POST", "/assistants", { graph_id: "chain", name: "own" }, alice);
    const run = { assistant_id, input: { steps: [] }, webhook: "https://hooks.invalid" };
    await api.call("POST", `/threads/${thread_id}/runs/wait`, run, alice);
    await api.call("POST", "/runs/crons", { assistant_id, schedule: "0 9 * * *", input: {} }, alice);
    const countOf = async (method: "GET" | "POST", path: string, headers: Headers) => {
      const found = await api.call(
        method,
        path,
        method === "POST" ? { name: "own", thread_id: null } : undefined,
        headers,
      );
      return Array.isArray(found) ? found.length : (found.total?.runs ?? found.runs?.length ?? found);
    };
    for (const [method, path] of [
      ["POST", "/threads/search"],
      ["POST", "/threads/count"],
      ["POST", "/assistants/search"],
      ["POST", "/assistants/count"],
      ["POST", "/runs/crons/search"],
      ["POST", "/runs/crons/count"],
      ["GET", "/webhooks/deliveries"],
      ["GET", "/app/api/runs"],
      ["GET", "/app/api/runs/monitoring"],
    ] as const)
      expect([
        path,
        (await countOf(method, path, alice)) > 0,
        await countOf(method, path, { authorization: "Bearer eve" }),
      ]).toEqual([path, true, 0]);
  });
});
