import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closedService, newCaller, newKey, newWorkspace } from "../http/callers.ts";
import { type Scenario, UNKNOWN_ID } from "../http/scenario.ts";
import { run, TraceClient } from "../traces/trace-client.ts";

const API = "/api/v1/annotation-queues";
const OVERVIEW = "/app/api/annotation-queues";

let api: Scenario;
beforeAll(async () => {
  api = await closedService("sqlite");
});
afterAll(() => api.stop());

describe("workspaces", () => {
  it("may have prompts of the same name, which are invisible to each other", async () => {
    const [own, stranger] = [
      await newCaller(api, { tenant_id: await newWorkspace(api) }),
      await newCaller(api, { tenant_id: await newWorkspace(api) }),
    ];
    await api.call("POST", "/repos/", { repo_handle: "shared" }, own);
    const { commit } = await api.call("POST", "/commits/-/shared", { manifest: { text: "secret" } }, own);
    for (const [method, path, body] of [
      ["GET", "/repos/-/shared"],
      ["PATCH", "/repos/-/shared", {}],
      ["DELETE", "/repos/-/shared"],
      ["POST", "/likes/-/shared", { like: true }],
      ["GET", "/repos/-/shared/tags"],
      ["POST", "/repos/-/shared/tags", { tag_name: "t", commit_id: commit.id }],
      ["DELETE", "/repos/-/shared/tags/t"],
      ["GET", "/commits/-/shared"],
      ["POST", "/commits/-/shared", { manifest: {} }],
      ["GET", `/commits/-/shared/${commit.commit_hash}`],
    ] as const)
      expect([method, path, (await api.send(method, path, body, stranger)).status]).toEqual([method, path, 404]);
    expect((await api.call("GET", "/repos", undefined, stranger)).total).toBe(0);
    await api.call("POST", "/repos/", { repo_handle: "shared" }, stranger);
    expect((await api.send("GET", `/commits/-/shared/${commit.commit_hash}`, undefined, stranger)).status).toBe(404);
    expect((await api.call("GET", "/commits/-/shared", undefined, own)).total).toBe(1);
  });

  it("own their prompts as - and as the handle in the settings", async () => {
    const tenant_id = await newWorkspace(api);
    const own = await newCaller(api, { tenant_id });
    const settings = await api.call("GET", "/api/v1/settings", undefined, own);
    expect(settings).toMatchObject({ id: tenant_id, display_name: expect.stringContaining("workspace ") });
    await api.call("POST", "/repos", { repo_handle: "named" }, own);
    expect((await api.send("GET", `/repos/${settings.tenant_handle}/named`, undefined, own)).status).toBe(200);
    expect((await api.send("GET", "/repos/another/named", undefined, own)).status).toBe(404);
  });

  it("keep their annotation queues", async () => {
    const own = await newCaller(api, { tenant_id: await newWorkspace(api) });
    const stranger = await newCaller(api, { tenant_id: await newWorkspace(api) });
    const traced = run();
    await new TraceClient(api.service, own).post(traced);
    const queue = await api.call("POST", API, { name: "own" }, own);
    const [item] = await api.call("POST", `${API}/${queue.id}/runs`, [traced.id], own);
    const platform = "/v1/platform/annotation-queues";
    for (const [method, path, body] of [
      ["GET", `${API}/${queue.id}`],
      ["PATCH", `${API}/${queue.id}`, {}],
      ["DELETE", `${API}/${queue.id}`],
      ["GET", `${API}/${traced.id}/queues`],
      ["POST", `${API}/populate`, { queue_id: queue.id, session_ids: [UNKNOWN_ID] }],
      ["POST", `${API}/${queue.id}/runs`, []],
      ["POST", `${API}/${queue.id}/runs/by-key`, []],
      ["GET", `${API}/${queue.id}/runs`],
      ["GET", `${API}/${queue.id}/run/0`],
      ["PATCH", `${API}/${queue.id}/runs/${item.id}`, {}],
      ["DELETE", `${API}/${queue.id}/runs/${item.id}`],
      ["POST", `${API}/${queue.id}/runs/delete`, { delete_all: true }],
      ["GET", `${API}/${queue.id}/size`],
      ["GET", `${API}/${queue.id}/total_size`],
      ["GET", `${API}/${queue.id}/total_archived`],
      ["POST", `${API}/status/${item.id}`, { status: "completed" }],
      ["POST", `${platform}/${queue.id}/items`, { items: [] }],
      ["GET", `${platform}/${queue.id}/items?status=archived`],
      ["GET", `${platform}/${queue.id}/items/count?status=all`],
      ["PATCH", `${platform}/${queue.id}/items/${item.id}`, {}],
      ["POST", `${platform}/${queue.id}/items/delete`, { item_ids: [item.id] }],
      ["GET", `${platform}/${queue.id}/items/${item.id}/placement`],
      ["POST", `${platform}/items/${item.id}/status`, { status: "completed" }],
    ] as const)
      expect([method, path, (await api.send(method, path, body, stranger)).status]).toEqual([method, path, 404]);
    for (const path of [API, OVERVIEW]) expect(await api.call("GET", path, undefined, stranger)).toEqual([]);
    const theirs = await api.call("POST", API, { id: queue.id, name: "theirs" }, stranger);
    expect((await api.send("POST", `${API}/${theirs.id}/runs`, [traced.id], stranger)).status).toBe(404);
    expect(await api.call("GET", `${API}/${queue.id}/runs`, undefined, own)).toMatchObject([
      { id: traced.id, completed_by: [] },
    ]);
  });
});

describe("users of a workspace", () => {
  it("review separately, and archive an item when enough of them completed it", async () => {
    const tenant_id = await newWorkspace(api);
    const [ann, bob] = await Promise.all(
      ["ann", "bob"].map(async (user_id) => ({ "X-Api-Key": (await newKey(api, { tenant_id, user_id })).key })),
    );
    const traced = run();
    await new TraceClient(api.service, ann).post(traced);
    const queue = await api.call("POST", API, { name: "both", num_reviewers_per_item: 2 }, ann);
    const [item] = await api.call("POST", `${API}/${queue.id}/runs`, [traced.id], ann);
    const count = async (caller: Record<string, string> | undefined, status: string) =>
      (
        await api.call(
          "GET",
          `/api/v1/platform/annotation-queues/${queue.id}/items/count?status=${status}`,
          undefined,
          caller,
        )
      ).count;
    const counts = async (caller: Record<string, string> | undefined) => {
      const sections = ["needs_my_review", "needs_others_review", "archived"];
      const counted = await Promise.all(sections.map((status) => count(caller, status)));
      const [{ items }] = await api.call("GET", `${OVERVIEW}?ids=${queue.id}`, undefined, caller);
      expect(sections.map((status) => items[status])).toEqual(counted);
      return counted;
    };

    expect(await counts(ann)).toEqual([1, 0, 0]);
    const review = (caller: Record<string, string> | undefined, status: string | null) =>
      api.call("POST", `${API}/status/${item.id}`, { status }, caller);
    expect(await review(ann, "completed")).toMatchObject({ status: "completed", is_archived: false });
    expect(await counts(ann)).toEqual([0, 1, 0]);
    expect(await counts(bob)).toEqual([1, 0, 0]);
    await review(bob, "viewed");
    expect(await counts(bob)).toEqual([1, 0, 0]);
    expect(await review(bob, "completed")).toMatchObject({ is_archived: true });
    expect(await counts(ann)).toEqual([0, 0, 1]);
    const [archived] = await api.call("GET", `${API}/${queue.id}/runs?archived=true`, undefined, ann);
    expect(archived).toMatchObject({
      id: traced.id,
      completed_by: ["ann", "bob"],
      last_reviewed_time: expect.any(String),
    });
    const total = (query: string) => api.call("GET", `${API}/${queue.id}/total_archived?${query}`, undefined, ann);
    expect(await total("start_time=2020-01-01T00:00:00Z")).toEqual({ size: 1 });
    expect(await total("end_time=2020-01-01T00:00:00Z")).toEqual({ size: 0 });
    await review(ann, null);
    expect(await counts(ann)).toEqual([1, 0, 0]);
  });
});
