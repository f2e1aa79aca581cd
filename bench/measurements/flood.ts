import { v7 } from "uuid";
import { HttpApi } from "../http-api.ts";
import { drive } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { serverOf } from "../target.ts";

const ADMIN_KEY = "bench-0123456789abcdef0123456789abcdef";
/** As a call of a language model, a run waits for most of its time. */
const RUN = { assistant_id: "ticks", input: { count: 2, every_ms: 200, go: "/" }, if_not_exists: "create" };
/** Runs of the other workspace, by 4 clients that wait for each. */
const CALLS = 400;
const CLIENTS = 4;
/** Pending runs before the measurement. 50 slots take 4 s for them, in which 4 more clients create further ones. */
const QUEUED = 1_000;

/** The latency of a workspace while another one fills the queue. */
export const flood: Measurement = {
  name: "flood",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "base_p99_ms", label: "runs of 200 ms of a workspace, 4 at once: p99, ms" },
    { key: "flood_p99_ms", label: "... while another workspace has at least 1,000 pending runs: p99, ms" },
    { key: "ratio", label: "... ratio of both", goal: { against: "itself", max: 2 } },
  ],
  async measure(start) {
    await using target = await start({ API_KEYS: ADMIN_KEY });
    const { port } = serverOf(target);
    const asAdmin = new HttpApi(port, { "x-api-key": ADMIN_KEY });
    const [one, other] = await Promise.all(
      ["one", "other"].map(async (name) => {
        const workspace = await asAdmin.send("POST", "/admin/workspaces", { body: { name }, status: 201 });
        const { tenant_id } = JSON.parse(workspace) as { tenant_id: string };
        return new HttpApi(port, { "x-api-key": ADMIN_KEY, "x-tenant-id": tenant_id });
      }),
    );
    if (!one || !other) throw new Error("The service has created no workspaces.");
    const measure = () => drive(CLIENTS, { calls: CALLS }, () => other.send("POST", waitPath(), { body: RUN }));
    await drive(CLIENTS, { calls: CLIENTS }, () => other.send("POST", waitPath(), { body: RUN }));
    const base = await measure();
    const create = () => one.send("POST", `/threads/${v7()}/runs`, { body: RUN });
    await drive(CLIENTS, { calls: QUEUED }, create);
    let isOver = false;
    const loops = Array.from({ length: CLIENTS }, async () => {
      while (!isOver) await create();
    });
    const flooded = await measure();
    isOver = true;
    await Promise.all(loops);
    return { base_p99_ms: base.p99_ms, flood_p99_ms: flooded.p99_ms, ratio: flooded.p99_ms / base.p99_ms };
  },
};

const waitPath = (): string => `/threads/${v7()}/runs/wait`;
