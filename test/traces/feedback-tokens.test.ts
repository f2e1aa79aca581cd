import { randomUUID } from "node:crypto";
import { Client } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { until } from "../support/until.ts";
import { run, type TestRun, TraceClient } from "./trace-client.ts";

describe("a token for feedback", () => {
  let api: Scenario;
  let own: TraceClient;
  let stranger: TraceClient;
  let visitor: TraceClient;
  let client: Client;
  let traced: TestRun;
  beforeAll(async () => {
    api = await closedService("sqlite");
    const key = await newCaller(api, { tenant_id: await newWorkspace(api) });
    own = new TraceClient(api.service, key);
    stranger = new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));
    visitor = new TraceClient(api.service);
    client = new Client({ apiUrl: `${await api.service.listen()}/api/v1`, apiKey: key["X-Api-Key"] });
    traced = run({ session_name: randomUUID() });
    await own.post(traced);
  });
  afterAll(() => api.stop());

  const create = (body: object, by = own) => by.json("POST", "/feedback/tokens", body);
  const token = async (body: object = {}) =>
    (await create({ run_id: traced.id, feedback_key: randomUUID(), ...body })).body;
  const send = (id: string, body: object) => visitor.json("POST", `/api/v1/feedback/tokens/${id}`, body);
  const feedback = async (key: string) => (await own.get(`/feedback?key=${key}`)).body;

  it("creates feedback on its run, with its key, without an API key", async () => {
    const key = randomUUID();
    const { id, url, expires_at } = await token({ feedback_key: key });
    expect(url).toMatch(new RegExp(`^http://.*/api/v1/feedback/tokens/${id}$`));
    expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(2.9 * 3_600_000);
    const body = { score: true, comment: "good", metadata: { page: "chat" }, key: "other", run_id: randomUUID() };
    expect((await send(id, body)).status).toBe(200);
    expect((await visitor.get(`/feedback/tokens/${id}?score=0.5&value=fair&correction=better`)).status).toBe(200);
    expect(await feedback(key)).toMatchObject([
      { run_id: traced.id, score: 0.5, value: "fair", correction: "better" },
      { run_id: traced.id, score: 1, comment: "good", feedback_source: { type: "api", metadata: { page: "chat" } } },
    ]);
    expect((await own.read(traced.id)).feedback_stats[key]).toMatchObject({ n: 2, avg: 0.75 });
  });

  it("replaces its feedback when it has an id", async () => {
    const [key, id] = [randomUUID(), randomUUID()];
    const created = await token({ feedback_key: key, id });
    await send(created.id, { score: 0 });
    await send(created.id, { score: 1 });
    expect(await feedback(key)).toMatchObject([{ id, score: 1 }]);
  });

  it("belongs to its workspace, even where another has a run or feedback with the same id", async () => {
    const [key, id] = [randomUUID(), randomUUID()];
    await stranger.post(run({ id: traced.id }));
    await stranger.json("POST", "/feedback", { id, run_id: traced.id, key, score: 0 });
    const created = await token({ feedback_key: key, id });
    expect((await send(created.id, { score: 1 })).status).toBe(409);
    expect((await stranger.get(`/feedback?key=${key}`)).body).toMatchObject([{ id, score: 0 }]);
    expect((await stranger.get(`/feedback/tokens?run_id=${traced.id}`)).body).toEqual([]);
    expect((await visitor.get(`/feedback/tokens?run_id=${traced.id}`)).status).toBe(401);
    expect((await create({ run_id: traced.id, feedback_key: key }, visitor)).status).toBe(401);
  });

  it("expires", async () => {
    const soon = new Date(Date.now() + 150).toISOString();
    const { id } = await token({ expires_at: soon });
    await until("the token expires", async () => (await send(id, { score: 1 })).status === 404);
    expect((await send(id, { score: 1 })).body.detail).toContain("has expired");
    const listed = (await own.get(`/feedback/tokens?run_id=${traced.id}`)).body;
    expect(listed.map((each: { id: string }) => each.id)).not.toContain(id);
  });

  it.each([
    [{ expires_at: "2020-01-01" }],
    [{ expires_in: { minutes: 0 } }],
    [{ expires_in: { days: 5_000 } }],
    [{ expires_in: { hours: -1 } }],
    [{ feedback_key: "" }],
    [{ run_id: "x" }],
  ])("is refused with %j", async (fields) => {
    expect((await create({ run_id: traced.id, feedback_key: "k", ...fields })).status).toBe(422);
  });

  it("refuses invalid feedback", async () => {
    const { id } = await token();
    expect((await send(id, { score: "high" })).status).toBe(422);
    expect((await visitor.get(`/feedback/tokens/${id}?score=high`)).status).toBe(422);
    expect((await send(randomUUID(), { score: 1 })).status).toBe(404);
    expect((await send("x", { score: 1 })).status).toBe(422);
  });

  it("is created, used and listed by the JavaScript client", async () => {
    const later = run({ session_name: traced.session_name });
    const created = await client.createPresignedFeedbackToken(later.id, "thumbs", { expiration: { days: 1 } });
    const many = await create([1, 2].map(() => ({ run_id: later.id, feedback_key: "thumbs" })));
    expect(many.body).toHaveLength(2);
    expect((await fetch(`${created.url}?score=1`)).status).toBe(200);
    await own.post(later);
    expect((await own.read(later.id)).feedback_stats.thumbs).toMatchObject({ n: 1, avg: 1 });
    const listed: { id: string }[] = [];
    for await (const each of client.listPresignedFeedbackTokens(later.id)) listed.push(each);
    expect(listed).toContainEqual(created);
    expect(new Set(listed.map(({ id }) => id))).toEqual(
      new Set([created, ...many.body].map(({ id }: { id: string }) => id)),
    );
  });
});
