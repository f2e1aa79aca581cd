import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario, Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";

const PLACES = 4;
const WEIGHT = 3;

/** Somebody in a workspace. */
async function newUser(api: Scenario, tenant_id: string) {
  const headers = await newCaller(api, { tenant_id });
  const call = (method: "GET" | "POST", path: string, body?: unknown): Promise<Wire> =>
    api.call(method, path, body, headers);
  return {
    async start(body: object): Promise<string> {
      const { thread_id } = await call("POST", "/threads", {});
      const { run_id } = await call("POST", `/threads/${thread_id}/runs`, body);
      return `/threads/${thread_id}/runs/${run_id}`;
    },
    statusOf: async (run: string): Promise<string> => (await call("GET", run)).status,
    join: (run: string) => call("GET", `${run}/join`),
  };
}

/** Finding 8 of the security review: runs of one workspace made those of another wait for all that it had queued. */
describe.each(databases)("runs of several workspaces on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database, { N_JOBS_PER_WORKER: String(PLACES), THREADMILL_HOSTS: "1" });
  });
  afterAll(() => api.stop());

  it("take turns at free slots, however many requests one of them has queued", async () => {
    const inNewWorkspace = async () => newUser(api, await newWorkspace(api));
    const [crowd, one, two] = [await inNewWorkspace(), await inNewWorkspace(), await inNewWorkspace()];
    const doors = Array.from({ length: PLACES * 4 }, () => api.newDoor());
    const queued: string[] = [];
    for (const { path: door } of doors)
      queued.push(await crowd.start({ assistant_id: "slow", input: { steps: [], door } }));
    const statuses = () => Promise.all(queued.map((run) => crowd.statusOf(run)));
    const have = async (status: string) => (await statuses()).filter((found) => found === status).length;
    await until("all places are taken", async () => (await have("running")) === PLACES);
    const waiting = [];
    for (const user of [one, one, two, two])
      waiting.push({ user, run: await user.start({ assistant_id: "chain", input: { steps: [] } }) });

    doors[0]?.open();
    for (const { user, run } of waiting) expect((await user.join(run)).steps.length).toBeGreaterThan(0);
    // Of those that were queued before them, the one place that became free can have been given to one, and that after them.
    expect(await have("pending")).toBeGreaterThanOrEqual(PLACES * 3 - 1);

    for (const door of doors) door.open();
    await until("all have ended", async () => (await have("success")) === doors.length);
  });
});

describe.each(databases)("runs of workspaces with weights on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database, {
      N_JOBS_PER_WORKER: "1",
      THREADMILL_HOSTS: "1",
      THREADMILL_WORKSPACE_WEIGHTS: `${DEFAULT_TENANT}=${WEIGHT}`,
    });
  });
  afterAll(() => api.stop());

  it("start as many runs per turn as their weight", async () => {
    const heavy = await newUser(api, DEFAULT_TENANT);
    const light = await newUser(api, await newWorkspace(api));
    const queued = new Map<string, { user: typeof heavy; open(): void }>();
    const start = async (user: typeof heavy) => {
      const door = api.newDoor();
      const run = await user.start({ assistant_id: "slow", input: { steps: [], door: door.path } });
      queued.set(run, { user, open: () => door.open() });
    };
    const running = async () => {
      let found: string | undefined;
      await until("one is running", async () => {
        for (const [run, { user }] of queued) if ((await user.statusOf(run)) === "running") found = run;
        return found !== undefined;
      });
      return found as string;
    };
    await start(light);
    // It occupies the only slot while the others are queued.
    const first = await running();
    for (const user of [heavy, light]) for (let n = 0; n < 2 * WEIGHT; n++) await start(user);
    const order: string[] = [];
    for (let run = first; ; run = await running()) {
      const { user, open } = queued.get(run) as { user: typeof heavy; open(): void };
      order.push(user === heavy ? "heavy" : "light");
      open();
      await user.join(run);
      queued.delete(run);
      if (queued.size === 0) break;
    }
    const turn = [...Array<string>(WEIGHT).fill("heavy"), "light"];
    expect(order.slice(1, 2 * turn.length + 1)).toEqual([...turn, ...turn]);
  });
});

describe("streams and waits of one user", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService("sqlite", { THREADMILL_MAX_OPEN_PER_USER: "2" });
  });
  afterAll(() => api.stop());

  it("have a limit that does not affect others and counts only open ones", async () => {
    const tenant_id = await newWorkspace(api);
    const [one, other] = [
      await newCaller(api, { tenant_id, user_id: "one" }),
      await newCaller(api, { tenant_id, user_id: "other" }),
    ];
    const door = api.newDoor();
    const body = { assistant_id: "slow", input: { steps: [], door: door.path } };
    const open = [api.send("POST", "/runs/wait", body, one), api.send("POST", "/runs/stream", body, one)];
    const runs = async () => (await api.call("GET", "/app/api/runs", undefined, one)).runs.length;
    await until("both are open", async () => (await runs()) === 2);

    const refused = await api.send("POST", "/runs/stream", body, one);
    expect([refused.status, refused.text]).toEqual([429, expect.stringContaining("THREADMILL_MAX_OPEN_PER_USER")]);
    expect(await runs()).toBe(2);
    expect((await api.send("POST", "/threads/search", {}, one)).status).toBe(200);
    const others = api.send("POST", "/runs/wait", body, other);

    door.open();
    for (const { status } of await Promise.all([...open, others])) expect(status).toBe(200);
    expect((await api.send("POST", "/runs/wait", body, one)).status).toBe(200);
  });
});
