import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AUTH_CONFIG, Scenario } from "../http/scenario.ts";

const bearer = (name: string) => ({ authorization: `Bearer ${name}` });

describe("an authentication handler", () => {
  let api: Scenario;
  beforeAll(async () => {
    const intervals = { auth_timeout_ms: 2_000, host_silent_ms: 500 };
    api = await Scenario.start("sqlite", {}, { config: AUTH_CONFIG, intervals });
  });
  afterAll(() => api.stop());

  it.each(["waits", "blocks", "exits"])("that %s fails its own request only, and blocks no others", async (name) => {
    const failing = api.send("POST", "/threads", {}, bearer(name));
    const others = Promise.all([1, 2, 3].map(() => api.send("POST", "/threads", {}, bearer("alice"))));
    const started_at = performance.now();
    expect((await api.send("GET", "/ok")).status).toBe(200);
    expect(performance.now() - started_at).toBeLessThan(1_000);
    expect((await others).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await failing).status).toBe(500);
  });
});
