import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller, newWorkspace } from "./callers.ts";
import type { Scenario } from "./scenario.ts";

describe.each(databases)("metrics on %s", (database) => {
  let api: Scenario;
  let text = "";
  beforeAll(async () => {
    api = await closedService(database);
  });
  afterAll(() => api.stop());

  /** Value of a sample by its name and labels; undefined if it does not exist. */
  const sample = (line: string): number | undefined =>
    text
      .split("\n")
      .filter((other) => other.startsWith(`${line} `))
      .map((other) => Number(other.slice(line.length + 1)))[0];
  const scrape = async (): Promise<void> => {
    const { status, headers, text: body } = await api.send("GET", "/metrics", undefined, ADMIN);
    expect([status, headers.get("content-type")]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
    text = body;
  };

  it("count and measure runs, those that are active, and their readers", async () => {
    const user = await newCaller(api, { tenant_id: await newWorkspace(api) });
    const { thread_id } = await api.call("POST", "/threads", {}, user);
    await api.call("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "chain", input: {} }, user);
    await scrape();
    expect(sample('threadmill_run_duration_seconds_count{status="success"}')).toBe(1);
    expect(sample("threadmill_run_wait_seconds_count")).toBe(1);
    expect(sample('threadmill_runs{status="pending"}')).toBe(0);
    expect(sample("threadmill_graph_host_failures_total")).toBe(0);
    expect(sample("threadmill_traces_skipped_total")).toBe(0);
    const route = 'method="POST",route="/threads/:thread_id/runs/wait",status="200"';
    expect(sample(`threadmill_http_request_duration_seconds_count{${route}}`)).toBe(1);

    const later = { assistant_id: "chain", input: {}, after_seconds: 1_000 };
    await api.call("POST", `/threads/${thread_id}/runs`, later, user);
    const { thread_id: other } = await api.call("POST", "/threads", {}, user);
    const path = `/threads/${other}/runs`;
    const { run_id } = await api.call("POST", path, { assistant_id: "slow", input: {} }, user);
    const joined = api.send("GET", `${path}/${run_id}/join`, undefined, user);
    await until("the run is executed and read", async () => {
      await scrape();
      return sample('threadmill_runs{status="running"}') === 1 && sample("threadmill_run_readers") === 1;
    });
    expect(sample('threadmill_runs{status="pending"}')).toBe(1);
    // The run that is scheduled for later is not due.
    expect(sample("threadmill_run_oldest_due_seconds")).toBe(0);
    await api.send("POST", `${path}/${run_id}/cancel?wait=true&action=rollback`, undefined, user);
    await joined;
    await scrape();
    expect(sample('threadmill_run_duration_seconds_count{status="rolled_back"}')).toBe(1);
    expect(sample("threadmill_run_readers")).toBe(0);
  });

  it("count the graph hosts that end or block", async () => {
    // The host must be a thread of its own, because the graph ends it.
    const other = await closedService(database, { THREADMILL_HOSTS: "1" }, { inline: false });
    const failures = async (): Promise<number> => {
      const { text } = await other.send("GET", "/metrics", undefined, ADMIN);
      return Number(/^threadmill_graph_host_failures_total (\d+)$/m.exec(text)?.[1]);
    };
    try {
      const before = await failures();
      const run = { assistant_id: "dies", input: { steps: [] } };
      expect((await other.call("POST", "/runs/wait", run, ADMIN)).__error__).toBeDefined();
      const after = await failures();
      expect(after).toBeGreaterThan(before);
      const works = { assistant_id: "chain", input: { steps: [] } };
      expect((await other.call("POST", "/runs/wait", works, ADMIN)).steps).toEqual(["a", "b", "c"]);
      expect(await failures()).toBe(after);
    } finally {
      await other.stop();
    }
  });

  it("contain the process and its connections", async () => {
    await scrape();
    expect(sample("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
    const idle = sample('threadmill_database_connections{state="idle"}');
    if (database === "postgres") expect(idle).toBeGreaterThan(0);
    else expect(idle).toBeUndefined();
  });

  it("are JSON on request", async () => {
    const metrics = await api.call("GET", "/metrics?format=json", undefined, ADMIN);
    const names = metrics.map(({ name }: { name: string }) => name);
    expect(names).toContain("threadmill_runs");
    expect(await api.send("GET", "/metrics?format=xml", undefined, ADMIN)).toMatchObject({ status: 422 });
  });

  it("are those of all workspaces, so only administrators of the default one read them", async () => {
    const tenant_id = await newWorkspace(api);
    expect(await api.send("GET", "/metrics")).toMatchObject({ status: 401 });
    const user = await newCaller(api, {});
    expect(await api.send("GET", "/metrics", undefined, user)).toMatchObject({ status: 403 });
    const admin = await newCaller(api, { tenant_id, scopes: ["admin"] });
    expect(await api.send("GET", "/metrics", undefined, admin)).toMatchObject({
      status: 403,
      body: { detail: "Only administrators of the default workspace can read the metrics." },
    });
  });
});
