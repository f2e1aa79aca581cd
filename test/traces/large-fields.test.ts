import { randomBytes, randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { partsOf, run, TraceClient } from "./trace-client.ts";

const MIB = 2 ** 20;

describe.each(databases)("a body of traces, on %s", (database) => {
  let api: Scenario;
  let client: TraceClient;
  beforeAll(async () => {
    api = await closedService(database);
    client = new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));
  });
  afterAll(() => api.stop());

  it("with an attachment or a field that is too large stores the rest, and names both", async () => {
    const [large, small] = [run(), run()];
    const text = "x".repeat(21 * MIB);
    const attachment = (mib: number) => [Buffer.alloc(mib * MIB), "application/octet-stream"];
    const parts = {
      ...partsOf("post", [{ ...large, outputs: { text } }, small]),
      [`attachment.${large.id}.large`]: attachment(51),
      [`attachment.${large.id}.small`]: attachment(1),
    };
    const answer = await client.sendParts(parts, "gzip");
    expect(answer).toMatchObject({
      status: 400,
      body: {
        detail: [
          { loc: ["body", large.id, "outputs"], msg: expect.stringContaining("at most 20971520 bytes") },
          { loc: ["body", large.id, "attachments", "large"], msg: expect.stringContaining("at most 52428800 bytes") },
        ],
      },
    });
    const { inputs, outputs, s3_urls } = await client.read(large.id);
    expect([inputs, outputs, Object.keys(s3_urls)]).toEqual([large.inputs, null, ["attachment.small"]]);
    expect((await client.read(small.id)).outputs).toEqual(small.outputs);
  });

  it("with a field that is too large is limited on every route", async () => {
    const text = "x".repeat(21 * MIB);
    const [large, small] = [run({ extra: { text } }), run()];
    const reason = (id: string, field: string) => [{ loc: ["body", id, field], msg: expect.stringContaining("bytes") }];
    const batch = await client.json("POST", "/api/v1/runs/batch", { post: [large, small] });
    expect(batch).toMatchObject({ status: 400, body: { detail: reason(large.id, "extra") } });
    expect([(await client.read(large.id)).extra, (await client.read(small.id)).name]).toEqual([
      { metadata: {} },
      "run",
    ]);

    const single = run({ inputs: { text } });
    const created = await client.json("POST", "/api/v1/runs", single);
    expect(created).toMatchObject({ status: 422, body: { detail: reason(single.id, "inputs") } });
    expect((await client.get(`/runs/${single.id}`)).status).toBe(404);
    const update = { name: "new", error: text };
    const updated = await client.json("PATCH", `/api/v1/runs/${small.id}`, update);
    expect(updated).toMatchObject({ status: 422, body: { detail: reason(small.id, "error") } });
    expect(await client.read(small.id)).toMatchObject({ name: "run", error: null });

    const [traceId, spanId] = [randomUUID().replaceAll("-", ""), randomBytes(8).toString("hex")];
    const ns = String(Date.UTC(2026, 0, 31) * 1e6);
    const file = { name: "large", content: Buffer.alloc(51 * MIB).toString("base64") };
    const attributes = [
      { key: "langsmith.trace.session_name", value: { stringValue: "large spans" } },
      { key: "output.value", value: { stringValue: text } },
      { key: "langsmith.attachments", value: { stringValue: JSON.stringify([file]) } },
    ];
    const span = { traceId, spanId, name: "work", startTimeUnixNano: ns, endTimeUnixNano: ns, attributes };
    const spans = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] });
    const type = { "content-type": "application/json", "content-encoding": "gzip" };
    const body = new Uint8Array(gzipSync(spans));
    const exported = await client.send("POST", "/api/v1/otel/v1/traces", body, type);
    expect(exported).toMatchObject({ status: 200, body: { partialSuccess: { rejectedSpans: "0" } } });
    expect(exported.body.partialSuccess.errorMessage).toMatch(/outputs.*20971520 bytes.*attachments.large.*52428800/);
    const { id } = await client.session("large spans");
    const [stored] = await client.query({ session: [id] });
    expect(stored).toMatchObject({ name: "work", outputs: null, s3_urls: null });
  });
});
