import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import type { ServerProcess } from "../support/process.ts";
import { until } from "../support/until.ts";
import { LEASE_MS, sharing } from "./sharing.ts";
import { create, pidsOf, read } from "./steps.ts";

describe.each(databases)("instances of two rollouts on one database (%s)", (name) => {
  const shared = sharing(name);
  /** The old revision has the graph `gone`, which the new one has not; that has `added`. */
  const start = (rollout: 1 | 2): Promise<ServerProcess> =>
    shared.start(`test/graphs/shared/${rollout === 1 ? "before" : "after"}.json`, {
      THREADMILL_ROLLOUT: String(rollout),
    });
  const activate = async ({ url }: ServerProcess) =>
    expect((await fetch(`${url}/internal/activation`, { method: "POST" })).status).toBe(204);
  const { gate } = shared;
  const graphsOf = async ({ url }: ServerProcess) => {
    const body = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    const assistants = (await (await fetch(`${url}/assistants/search`, body)).json()) as { graph_id: string }[];
    return assistants.map(({ graph_id }) => graph_id).sort();
  };
  const thrice = ({ child }: ServerProcess) => [child.pid, child.pid, child.pid];
  /** The old one, which has been told to execute runs, and the new one, which has not. */
  const startBoth = async () => {
    const old = await start(1);
    await activate(old);
    return [old, await start(2)] as const;
  };

  it("leave runs to the one that was activated, wherever they are created", async () => {
    const [old, fresh] = await startBoth();
    for (let i = 0; i < 5; i++)
      for (const where of [old, fresh]) expect(await pidsOf(where, await create(where, {}))).toEqual(thrice(old));
    await activate(fresh);
    for (let i = 0; i < 5; i++)
      for (const where of [old, fresh]) expect(await pidsOf(where, await create(where, {}))).toEqual(thrice(fresh));
  });

  it("finish active runs on the old instance, and start queued runs on the new one", async () => {
    const [old, fresh] = await startBoth();
    const running = await create(old, { gates: { b: gate("go") } });
    const stream = read(old, running);
    await stream.until((events) => events.some(({ data }) => data.step === "b"));
    const waiting = await create(old, {}, running.thread_id);
    await activate(fresh);
    writeFileSync(gate("go"), "");

    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(await pidsOf(fresh, running)).toEqual(thrice(old));
    expect(await pidsOf(old, waiting)).toEqual([...thrice(old), ...thrice(fresh)]);
  });

  it("keep the assistants of a removed graph until the new rollout is activated", async () => {
    const old = await start(1);
    await activate(old);
    const fresh = await start(2);
    expect(await graphsOf(old)).toEqual(["gone", "steps"]);
    expect(await pidsOf(old, await create(old, {}, undefined, "gone"))).toEqual(thrice(old));
    await activate(fresh);
    expect(await graphsOf(fresh)).toEqual(["added", "steps"]);
    expect(await pidsOf(fresh, await create(fresh, {}, undefined, "added"))).toEqual(thrice(fresh));
  });

  it("are not reverted by a late activation or a restart of an old instance", async () => {
    const [old, fresh] = await startBoth();
    await activate(fresh);
    await activate(old);
    const again = await start(1);
    await activate(again);
    expect(await graphsOf(fresh)).toEqual(["added", "steps"]);
    for (const where of [old, again, fresh])
      expect(await pidsOf(where, await create(where, {}))).toEqual(thrice(fresh));
  });

  it("leave the runs of a killed instance to the next instance of its rollout", async () => {
    const [old, fresh] = await startBoth();
    const run = await create(old, { gates: { b: gate("go") } });
    const stream = read(fresh, run);
    await stream.until((events) => events.some(({ data }) => data.step === "b"));
    old.child.kill("SIGKILL");
    writeFileSync(gate("go"), "");
    // Where they were of one roll-out, the other one would have it by now.
    const killed_at = performance.now();
    await until("its lease is over", async () => performance.now() - killed_at > LEASE_MS + 1_500);
    const next = await start(1);

    const events = await stream.rest();
    expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
    expect(await pidsOf(fresh, run)).toEqual([old.child.pid, next.child.pid, next.child.pid]);
  });

  it("both execute runs as long as none was activated", async () => {
    const fresh = await start(2);
    expect(await pidsOf(fresh, await create(fresh, {}))).toEqual(thrice(fresh));
    expect(await graphsOf(fresh)).toEqual(["added", "steps"]);
  });
});
