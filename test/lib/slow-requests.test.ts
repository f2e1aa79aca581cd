import { setTimeout as sleep } from "node:timers/promises";
import { OpenAPIHono } from "@hono/zod-openapi";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { timeRequests } from "../../src/app/app.ts";
import type { Env } from "../../src/platform/http/route.ts";

type Line = Record<string, unknown>;

const lines: Line[] = [];
const info = (fields: Line, msg: string) => lines.push({ ...fields, msg });
const app = new OpenAPIHono<Env>();
app.use(timeRequests(new Registry(), { info } as never));
app.use(async (context, next) => {
  if (context.req.header("x-user")) context.set("caller", { tenant_id: "w1" } as Env["Variables"]["caller"]);
  await next();
});
app.onError((_, context) => context.json({}, 500));
const slow = async () => void (await sleep(1_050));
app.get("/threads/:id", async (context) => {
  await slow();
  return context.json({});
});
app.get("/fails/:id", async () => {
  await slow();
  throw new Error("why");
});
app.get("/fast", (context) => context.json({}));
for (const path of ["/runs/wait", "/runs/:id/join", "/runs/:id/stream", "/runs/:id/cancel"])
  app.get(path, async (context) => {
    await slow();
    return context.json({});
  });

describe("the log of slow requests", () => {
  it("has a line with the route of each, and none for fast ones and for those that wait by design", async () => {
    const user = { headers: { "x-user": "ada" } };
    const waiting = ["/runs/wait", "/runs/1/join", "/runs/1/stream", "/runs/1/cancel?wait=true"];
    await Promise.all([
      app.request("/threads/1", user),
      app.request("/fails/1"),
      app.request("/fast", user),
      ...waiting.map((path) => app.request(path, user)),
    ]);
    const duration_ms = expect.toSatisfy((ms: number) => Number.isInteger(ms) && ms > 1_000 && ms < 10_000);
    const msg = "slow request";
    expect(lines.sort((a, b) => Number(a.status) - Number(b.status))).toEqual([
      { method: "GET", path: "/threads/:id", status: 200, duration_ms, workspace_id: "w1", msg },
      { method: "GET", path: "/fails/:id", status: 500, duration_ms, workspace_id: undefined, msg },
    ]);
  });
});
