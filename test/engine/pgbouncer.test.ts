import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { experimentOf } from "../experiments/experiment.ts";
import { databases } from "../support/databases.ts";
import { hasPgBouncer, PgBouncer } from "../support/pgbouncer.ts";
import type { ServerProcess } from "../support/process.ts";
import { sharing } from "./sharing.ts";
import { create, pathOf, pidsOf, read } from "./steps.ts";

const CONFIG = "test/graphs/shared/langgraph.json";
const isPossible = databases.includes("postgres") && hasPgBouncer();
if (databases.includes("postgres") && !isPossible) console.log("Queries through PgBouncer: no pgbouncer in /usr/sbin.");

describe.runIf(isPossible)("processes whose queries pass through PgBouncer", () => {
  const shared = sharing("postgres");
  let bouncer: PgBouncer;
  beforeAll(async () => {
    bouncer = await PgBouncer.start(inject("postgres"));
  });
  afterAll(() => bouncer.stop());

  const start = (flags: string[]) => {
    const env = { THREADMILL_DATABASE_POOLER_URL: bouncer.urlOf(shared.database().url as string) };
    return shared.start(CONFIG, env, flags);
  };
  const post = (server: ServerProcess, path: string, body: object) =>
    fetch(`${server.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  it("execute runs, pass their events on, and cancel and continue them", async () => {
    const [api, first] = await Promise.all([start(["--role", "api"]), start(["--role", "worker"])]);
    const before = await bouncer.transactions();
    const runs = await Promise.all(Array.from({ length: 50 }, () => create(api, {})));
    for (const run of runs) {
      const events = await read(api, run).rest();
      expect(events.map(({ id }) => id)).toEqual(events.map((_, i) => String(i + 1)));
      expect(await pidsOf(api, run)).toEqual([1, 2, 3].map(() => first.child.pid));
    }
    expect((await bouncer.transactions()) - before).toBeGreaterThan(50 * 5);

    const endless = await create(api, { gates: { a: shared.gate("never") } });
    await read(api, endless).until((events) => events.some(({ data }) => data.step === "a"));
    expect((await post(api, `${pathOf(endless)}/cancel?wait=true`, {})).status).toBe(204);

    const run = await create(api, { gates: { b: shared.gate("go") } });
    const stream = read(api, run);
    await stream.until((events) => events.some(({ data }) => data.step === "b"));
    const second = await start(["--role", "worker"]);
    first.child.kill("SIGKILL");
    await stream.until((events) => events.some(({ data }) => data.step === "b" && data.pid === second.child.pid));
    writeFileSync(shared.gate("go"), "");
    await stream.rest();
    expect(await pidsOf(api, run)).toEqual([first.child.pid, second.child.pid, second.child.pid]);
    for (const server of [api, second]) expect(server.output()).not.toMatch(/error|warn/i);
  });

  it("store and compare experiments", async () => {
    const server = await start([]);
    const upload = experimentOf(200, (index) => [{ key: "score", score: index % 2 }]);
    const stored = await post(server, "/api/v1/datasets/upload-experiment", upload);
    const { experiment, dataset } = (await stored.json()) as Record<string, { id: string }>;
    const compared = await post(server, `/api/v1/datasets/${dataset?.id}/runs`, {
      session_ids: [experiment?.id],
      limit: 100,
    });
    expect([stored.status, compared.status]).toEqual([200, 200]);
    expect(await compared.json()).toHaveLength(100);
  });
});
