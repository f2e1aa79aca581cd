import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { randomOf } from "../support/random.ts";
import { startService, type TestService } from "../support/service.ts";
import { partsOf, run, TraceClient } from "./trace-client.ts";

describe.each(databases)("runs that are read on %s", (database) => {
  let service: TestService;
  let client: TraceClient;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json", env: { API_KEYS: "" } });
    client = new TraceClient(service);
  });
  afterAll(() => service.stop());

  it("have their whole error, even where no payload is selected", async () => {
    const error = `${"x".repeat(1_200)} end`;
    const failed = run({ session_name: randomUUID(), error });
    await client.post(failed);
    const { session_id } = await client.read(failed.id);
    const [light] = await client.query({ session: [session_id], select: ["error", "status"] });
    expect(light).toEqual({
      ...{ id: failed.id, name: "run", run_type: "chain", trace_id: failed.id, error, status: "error" },
      start_time: expect.any(String),
    });
    const body = { project_ids: [session_id], selects: ["ERROR"] };
    expect((await client.json("POST", "/api/v2/runs/query", body)).body.items).toEqual([{ error }]);
    const [whole] = await client.query({ session: [session_id], select: ["inputs"] });
    expect(whole.inputs).toEqual(failed.inputs);
  });

  it("are sorted by start time, then by their place in the tree, on all pages", async () => {
    const session_name = randomUUID();
    const roots = Array.from({ length: 4 }, () => run({ session_name }));
    const children = roots.flatMap((parent) => [run({ parent, session_name }), run({ parent, session_name })]);
    const all = [...roots, ...children, ...children.map((parent) => run({ parent, session_name }))];
    await client.post(...all);
    const { session_id } = await client.read(all[0]?.id as string);
    const orders = all.map(({ dotted_order }) => dotted_order).sort();
    for (const order of ["asc", "desc"]) {
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const body = { session: [session_id], select: ["dotted_order"], limit: 3, order, cursor };
        const page = (await client.json("POST", "/api/v1/runs/query", body)).body;
        found.push(...page.runs.map(({ dotted_order }: { dotted_order: string }) => dotted_order));
        cursor = page.cursors.next ?? undefined;
        if (!cursor) break;
      }
      expect(found).toEqual(order === "asc" ? orders : orders.toReversed());
    }
  });

  it("are counted by type, name, tag and metadata key", async () => {
    const session_name = randomUUID();
    const metadata = { user: "u", 'odd "key"': 1 };
    await client.post(
      run({ session_name, name: "agent", tags: ["a", "a"], extra: { metadata } }),
      run({ session_name, name: "agent", run_type: "llm", tags: ["a", "b"], extra: { metadata: { user: "v" } } }),
      run({ session_name, name: 'the "tool"', run_type: "tool" }),
    );
    const list = async (more: string) =>
      (await client.get(`/sessions?name=${session_name}&include_stats=true${more}`)).body[0];
    expect((await list("")).run_facets).toEqual([]);
    const { id, run_facets } = await list("&facets=true");
    expect(run_facets.map(({ key, value, n }: Record<string, unknown>) => [key, value, n])).toEqual([
      ["run_type", "chain", 1],
      ["run_type", "llm", 1],
      ["run_type", "tool", 1],
      ["name", "agent", 2],
      ["name", 'the "tool"', 1],
      ["tag", "a", 2],
      ["tag", "b", 1],
      ["metadata_key", "user", 2],
      ["metadata_key", 'odd "key"', 1],
    ]);
    for (const { query, n } of run_facets) {
      const found = await client.query({ session: [id], filter: query, select: ["id"] });
      expect([query, found.length]).toEqual([query, n]);
    }
  });

  it("link to their attachments in lists", async () => {
    const session_name = randomUUID();
    const [first, second] = [run({ session_name }), run({ session_name, at: 10 })];
    const bytes = Buffer.from([0, 255, 13, 10, 45, 45]);
    const attachments = Object.fromEntries(
      ["a", "b c"].map((name) => [`attachment.${first.id}.${name}`, [bytes, "image/png"]]),
    );
    expect((await client.sendParts({ ...partsOf("post", [first, second]), ...attachments })).status).toBe(202);
    const { session_id } = await client.read(first.id);
    const download = async (url: string) => {
      const response = await service.threadmill.fetch(new Request(url));
      return Buffer.from(await response.arrayBuffer()).equals(bytes);
    };
    for (const select of [undefined, ["id", "s3_urls"]]) {
      const [without, { s3_urls }] = await client.query({ session: [session_id], select });
      expect(without.s3_urls).toBeNull();
      expect(Object.keys(s3_urls)).toEqual(["attachment.a", "attachment.b c"]);
      expect(s3_urls["attachment.b c"].mime_type).toBe("image/png");
      expect(await download(s3_urls["attachment.b c"].presigned_url)).toBe(true);
    }
    const [light] = await client.query({ session: [session_id], select: ["id"] });
    expect(light).not.toHaveProperty("s3_urls");
    const body = { project_ids: [session_id], selects: ["ID", "ATTACHMENTS"] };
    const { items } = (await client.json("POST", "/api/v2/runs/query", body)).body;
    expect(items).toMatchObject([{ id: second.id, attachments: {} }, { id: first.id }]);
    expect(Object.keys(items[1].attachments)).toEqual(["a", "b c"]);
    expect(await download(items[1].attachments.a)).toBe(true);
    const one = `/api/v2/runs/${first.id}?project_id=${session_id}&selects=ATTACHMENTS`;
    expect(Object.keys((await client.send("GET", one, undefined as never)).body.attachments)).toEqual(["a", "b c"]);
  });

  it("have the same statistics whether the database or the service adds them up", async () => {
    const session_name = randomUUID();
    const random = randomOf(7);
    const runs = Array.from({ length: 60 }, (_, at) => {
      const input_tokens = random.integer(0, 100);
      const usage_metadata = { input_tokens, output_tokens: 3, total_cost: random.integer(0, 1000) / 1e7 };
      const start = Date.UTC(2026, 0, 31, 12) + at * 10;
      return run({
        session_name,
        at: at * 10,
        run_type: at % 3 === 0 ? "chain" : "llm",
        end_time: at % 7 === 0 ? undefined : new Date(start + random.integer(-1, 5_000)).toISOString(),
        ...(at % 5 === 0 && { error: "broken" }),
        ...(at % 3 !== 0 && { outputs: { usage_metadata } }),
        ...(at % 4 === 0 && { events: [{ name: "new_token", time: new Date(start + 30).toISOString() }] }),
      });
    });
    await client.post(...runs);
    await client.json("POST", "/feedback", { run_id: runs[3]?.id, key: "good", score: 1 });
    await client.json("POST", "/feedback", { run_id: runs[9]?.id, key: "good", score: 0 });
    const { id: session, ...project } = await client.session(session_name);
    const stats = async (body: object) => (await client.json("POST", "/runs/stats", { session, ...body })).body;
    const added = await stats({ is_root: true });
    expect(added).toMatchObject({ run_count: 60, error_rate: expect.any(Number), latency_p99: expect.any(Number) });
    expect(added.total_cost).toBeGreaterThan(0);
    expect(added.median_tokens).toBeGreaterThan(0);
    expect(added.feedback_stats.good).toMatchObject({ n: 2, avg: 0.5 });
    expect(await stats({ filter: "eq(is_root, true)" })).toEqual(added);
    const { median_tokens, ...shared } = added;
    expect(project).toMatchObject(shared);
    const filter = 'eq(run_type, "llm")';
    expect(await stats({ is_root: true, filter })).toEqual(await stats({ filter }));
  });
});
