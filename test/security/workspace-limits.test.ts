import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startThreadmill } from "../../src/main.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario, Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import type { Answer } from "../support/service.ts";
import { until } from "../support/until.ts";

const MAX_PENDING = 3;
const MAX_RUNNING = 2;
const MAX_OPEN = 2;
const LIMITS = {
  THREADMILL_MAX_PENDING_RUNS: String(MAX_PENDING),
  THREADMILL_MAX_RUNNING_RUNS: String(MAX_RUNNING),
  THREADMILL_MAX_OPEN_PER_WORKSPACE: String(MAX_OPEN),
  THREADMILL_MAX_DEPLOYMENTS: "1",
  THREADMILL_MAX_UPLOAD_PER_USER: "80KB",
  THREADMILL_MAX_UPLOAD_PER_WORKSPACE: "200KB",
};

type Method = Parameters<Scenario["send"]>[0];

/** Somebody in a workspace, and the runs that they start. */
class User {
  readonly #api: Scenario;
  readonly headers: Record<string, string>;
  readonly runs: string[] = [];

  constructor(api: Scenario, headers: Record<string, string>) {
    this.#api = api;
    this.headers = headers;
  }

  send(method: Method, path: string, body?: unknown): Promise<Answer> {
    return this.#api.send(method, path, body, this.headers);
  }

  async start(body: object): Promise<Answer> {
    const thread = await this.send("POST", "/threads", {});
    const answer = await this.send("POST", `/threads/${thread.body.thread_id}/runs`, body);
    if (answer.status === 200) this.runs.push(`/threads/${thread.body.thread_id}/runs/${answer.body.run_id}`);
    return answer;
  }

  async count(status: string): Promise<number> {
    const runs = await Promise.all(this.runs.map((run) => this.send("GET", run)));
    return runs.filter(({ body }: { body: Wire }) => body.status === status).length;
  }
}

const expectRefused = (answer: Answer, setting: string): void => {
  expect([answer.status, answer.text]).toEqual([429, expect.stringContaining(setting)]);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
};

describe.each(databases)("the limits of a workspace on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database, { ...LIMITS, N_JOBS_PER_WORKER: "10", THREADMILL_HOSTS: "1" });
  });
  afterAll(() => api.stop());

  const newUser = async (tenant_id?: string, user_id = "one") =>
    new User(api, await newCaller(api, { tenant_id: tenant_id ?? (await newWorkspace(api)), user_id }));

  it("keep runs pending while as many are running, and not those of other workspaces", async () => {
    const [one, other] = [await newUser(), await newUser()];
    const door = api.newDoor();
    const body = { assistant_id: "slow", input: { steps: [], door: door.path } };
    for (let n = 0; n < MAX_RUNNING + MAX_PENDING; n++) {
      expect((await one.start(body)).status).toBe(200);
      if (n < MAX_RUNNING) await until("it is running", async () => (await one.count("running")) === n + 1);
    }
    // A run of another workspace passes those that wait.
    await other.start({ assistant_id: "chain", input: { steps: [] } });
    await until("it has ended", async () => (await other.count("success")) === 1);
    expect([await one.count("running"), await one.count("pending")]).toEqual([MAX_RUNNING, MAX_PENDING]);

    expectRefused(await one.start(body), "THREADMILL_MAX_PENDING_RUNS");
    const batch = [{ assistant_id: "chain" }, { assistant_id: "chain" }, { assistant_id: "chain" }];
    expect((await other.send("POST", "/runs/batch", batch)).status).toBe(200);
    expectRefused(await one.send("POST", "/runs/batch", batch.slice(0, 1)), "THREADMILL_MAX_PENDING_RUNS");

    door.open();
    await until("all have ended", async () => (await one.count("success")) === MAX_RUNNING + MAX_PENDING);
    expect((await one.start({ assistant_id: "chain", input: { steps: [] } })).status).toBe(200);
  });

  it.skipIf(database === "sqlite")("hold for all processes together", async () => {
    const others = await Promise.all([1, 2].map(() => startThreadmill(api.service.config, createLog("silent"))));
    const one = await newUser();
    const door = api.newDoor();
    const body = { assistant_id: "slow", input: { steps: [], door: door.path } };
    await Promise.all(Array.from({ length: MAX_PENDING }, () => one.start(body)));
    await until("as many are running", async () => (await one.count("running")) === MAX_RUNNING);
    // The end of a run lets each process claim.
    await one.send("POST", `${one.runs[0]}/cancel?wait=true`);
    await until("the next one is running", async () => (await one.count("pending")) === 0);
    expect(await one.count("running")).toBe(MAX_RUNNING);
    door.open();
    await until("all have ended", async () => (await one.count("running")) === 0);
    await Promise.all(others.map((other) => other.stop()));
  });

  it("accept all or none of a batch that is larger than the rest of the queue", async () => {
    const one = await newUser();
    const later = Array.from({ length: MAX_PENDING + 1 }, () => ({ assistant_id: "chain", after_seconds: 600 }));
    expectRefused(await one.send("POST", "/runs/batch", later), "THREADMILL_MAX_PENDING_RUNS");
    expect((await one.send("POST", "/runs/batch", later.slice(1))).status).toBe(200);
    expectRefused(await one.send("POST", "/runs", later[0]), "THREADMILL_MAX_PENDING_RUNS");
  });

  it("count open responses of all its users", async () => {
    const tenant_id = await newWorkspace(api);
    const [one, two, stranger] = [await newUser(tenant_id), await newUser(tenant_id, "two"), await newUser()];
    const door = api.newDoor();
    const body = { assistant_id: "slow", input: { steps: [], door: door.path } };
    const open = [one.send("POST", "/runs/wait", body), two.send("POST", "/runs/stream", body)];
    const runs = async () => (await one.send("GET", "/app/api/runs")).body.runs.length;
    await until("both are open", async () => (await runs()) === MAX_OPEN);
    for (const user of [one, two])
      expectRefused(await user.send("POST", "/runs/wait", body), "THREADMILL_MAX_OPEN_PER_WORKSPACE");
    expect(await runs()).toBe(MAX_OPEN);
    const others = stranger.send("POST", "/runs/wait", body);
    door.open();
    expect((await Promise.all([...open, others])).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await two.send("POST", "/runs/wait", { assistant_id: "chain", input: { steps: [] } })).status).toBe(200);
  });

  it("refuse bodies until the minute is over in which a user or a workspace has sent too many bytes", async () => {
    const tenant_id = await newWorkspace(api);
    const [one, two, three] = [
      await newUser(tenant_id),
      await newUser(tenant_id, "two"),
      await newUser(tenant_id, "three"),
    ];
    const item = (kb: number) => ({ namespace: ["notes"], key: "one", value: { text: "x".repeat(kb * 1_000) } });
    expect((await one.send("PUT", "/store/items", item(120))).status).toBe(204);
    const refused = await one.send("POST", "/threads", {});
    expectRefused(refused, "THREADMILL_MAX_UPLOAD_PER_USER");
    // 40 KB of 80 KB per minute are too much.
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(20);
    expect((await one.send("GET", "/info")).status).toBe(200);
    expect((await two.send("PUT", "/store/items", item(90))).status).toBe(204);
    expectRefused(await three.send("POST", "/threads", {}), "THREADMILL_MAX_UPLOAD_PER_WORKSPACE");
    const other = await newUser();
    expect((await other.send("POST", "/threads", {})).status).toBe(200);

    // With a length, and over a socket.
    const url = await api.service.listen();
    const init = { method: "PUT", headers: { "content-type": "application/json", ...other.headers } };
    const put = () => fetch(`${url}/store/items`, { ...init, body: JSON.stringify(item(90)) });
    expect([(await put()).status, (await put()).status]).toEqual([204, 429]);
  });

  it("refuse deployments until one is deleted", async () => {
    const [one, other] = [await newUser(), await newUser()];
    const create = (user: User, name: string) =>
      user.send("POST", "/v2/deployments", {
        name,
        source: "internal_source",
        source_config: {},
        source_revision_config: {},
      });
    // Each counts the others.
    const answers = await Promise.all(["first", "one", "more"].map((name) => create(one, name)));
    const [made, ...refused] = answers.toSorted((a, b) => a.status - b.status);
    expect(made?.status).toBe(201);
    for (const answer of refused) expectRefused(answer, "THREADMILL_MAX_DEPLOYMENTS");
    const first = made?.body;
    expectRefused(await create(one, "second"), "THREADMILL_MAX_DEPLOYMENTS");
    expect((await create(other, "first")).status).toBe(201);
    expect((await one.send("DELETE", `/v2/deployments/${first.id}`)).status).toBeLessThan(300);
    await until("it is deleted", async () => (await one.send("GET", `/v2/deployments/${first.id}`)).status === 404);
    expect((await create(one, "second")).status).toBe(201);
  });
});

describe.each(databases)("the limits of a user on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService(database, {
      THREADMILL_MAX_PENDING_RUNS_PER_USER: String(MAX_PENDING),
      THREADMILL_MAX_RUNNING_RUNS_PER_USER: String(MAX_RUNNING),
      N_JOBS_PER_WORKER: "10",
      THREADMILL_HOSTS: "1",
    });
  });
  afterAll(() => api.stop());

  it("keep runs pending while as many are running, and not those of other users of the workspace", async () => {
    const tenant_id = await newWorkspace(api);
    const newUser = async (user_id: string) => new User(api, await newCaller(api, { tenant_id, user_id }));
    const [one, two] = [await newUser("one"), await newUser("two")];
    const others = database === "sqlite" ? [] : [await startThreadmill(api.service.config, createLog("silent"))];
    const door = api.newDoor();
    const body = { assistant_id: "slow", input: { steps: [], door: door.path } };
    for (let n = 0; n < MAX_RUNNING + MAX_PENDING; n++) {
      expect((await one.start(body)).status).toBe(200);
      if (n < MAX_RUNNING) await until("it is running", async () => (await one.count("running")) === n + 1);
    }
    expectRefused(await one.start(body), "THREADMILL_MAX_PENDING_RUNS_PER_USER");
    // Both are claimed while older runs of the first user are pending.
    for (let n = 0; n < MAX_RUNNING; n++) expect((await two.start(body)).status).toBe(200);
    await until("they are running", async () => (await two.count("running")) === MAX_RUNNING);
    expect([await one.count("running"), await one.count("pending")]).toEqual([MAX_RUNNING, MAX_PENDING]);
    await one.send("POST", `${one.runs[0]}/cancel?wait=true`);
    await until("the next one is running", async () => (await one.count("pending")) === MAX_PENDING - 1);
    expect(await one.count("running")).toBe(MAX_RUNNING);
    door.open();
    await until("all have ended", async () => (await one.count("success")) === MAX_RUNNING + MAX_PENDING - 1);
    await Promise.all(others.map((other) => other.stop()));
  });
});
