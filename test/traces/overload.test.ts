import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { until } from "../support/until.ts";
import { openBody } from "./open-body.ts";
import { run, TraceClient } from "./trace-client.ts";

describe("bodies that are more than the service can store", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService("sqlite");
  });
  afterAll(() => api.stop());

  it("wait for room, and are refused when there is none in 8 s", async () => {
    const newHeaders = async () => newCaller(api, { tenant_id: await newWorkspace(api) });
    const client = new TraceClient(api.service, await newHeaders());
    const isSent = (body: { sent: () => number }, mib: number) =>
      until(`${mib} MiB are sent`, async () => body.sent() >= mib);
    const open = async () => openBody(api, await newHeaders(), Promise.withResolvers());
    const bodies = await Promise.all(Array.from({ length: 4 }, open));
    for (const body of bodies) await isSent(body, 60);
    const fifth = await open();
    await isSent(fifth, 17);
    const held = client.post(run());
    bodies[0]?.end();
    expect((await held).status).toBe(202);
    await isSent(fifth, 60);

    const started_at = performance.now();
    const sixth = await open();
    await isSent(sixth, 17);
    // Waits as long as the sixth, whose end makes room: which of the two comes first is not determined.
    const last = client.post(run());
    const refused = await sixth.answer;
    const seconds = (performance.now() - started_at) / 1000;
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(Math.round(seconds)).toBeGreaterThanOrEqual(8);
    expect(seconds).toBeLessThan(10);
    expect([202, 503]).toContain((await last).status);
    for (const body of [...bodies, fifth]) body.end();
    await Promise.all([...bodies, fifth].map(({ answer }) => answer));
    expect((await client.post(run())).status).toBe(202);
  });
});
