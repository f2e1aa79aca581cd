import type { Measurement, Values } from "../measurement.ts";
import { watchOk } from "../ok-watch.ts";
import { type Server, serverOf, type Target } from "../target.ts";
import { watchMemory } from "../watch-memory.ts";

const THREADS = 300;
const itself = (max: number) => ({ against: "itself", max }) as const;

/** The most expensive known requests in sequence, with concurrent requests of GET /ok. */
export const hostile: Measurement = {
  name: "hostile",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "hostile_ok_p99_ms", label: "eleven hostile requests: GET /ok meanwhile, p99, ms", goal: itself(250) },
    { key: "hostile_ok_max_ms", label: "... max, ms" },
    { key: "hostile_rss_mb", label: "... peak memory of the process, MB", goal: itself(1_000) },
    { key: "hostile_max_ms", label: "... slowest of the eleven, ms" },
  ],
  async measure(start) {
    await using target = await start();
    const server = serverOf(target);
    await prepare(server);
    return await attack(target, server, requests());
  },
};

const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`key-${n}`, n]));
const max_metadata = { ...keys(900), text: "x".repeat(40_000) };

/** Creates threads with the maximum of metadata, and one with large values. */
async function prepare(server: Server): Promise<void> {
  for (let n = 0; n < THREADS; n++) await server.send("POST", "/threads", { body: { metadata: max_metadata } });
  const input = { text: Array.from({ length: 20_000 }, (_, n) => ({ role: "user", content: `number ${n}`, n })) };
  await server.send("POST", "/runs/wait", { body: { assistant_id: "step", input } });
}

interface Request {
  path: string;
  body: Uint8Array;
  status: number;
}

function requests(): Request[] {
  const of = (path: string, status: number, body: object | string): Request => ({
    path,
    status,
    body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
  });
  const run = (input: object) => ({ assistant_id: "step", input });
  const list = (length: number) => Array.from({ length }, (_, n) => n);
  return [
    of("/threads/search", 200, { metadata: { ...keys(900), none: 1 } }),
    of("/threads/search", 200, { values: { text: list(10_000) } }),
    of("/threads/search", 422, { values: { text: list(20_000).map((n) => ({ n })) } }),
    of("/threads/search", 422, { metadata: { text: "x".repeat(500_000) } }),
    of("/threads", 422, { metadata: { text: "x".repeat(9_500_000) } }),
    of("/runs/wait", 422, `{"assistant_id": "step", "input": {${list(2_400_000).map((n) => `"k${n}":1`)}}}`),
    of("/runs/wait", 422, `[${"1,".repeat(23_999_999)}]`),
    of("/runs/wait", 422, "[".repeat(49_000_000)),
    of("/runs/wait", 422, `["${"😀".repeat(11_900_000)}",]`),
    of("/runs/wait", 200, run(keys(99_000))),
    of("/runs/wait", 200, run({ more: "\0".repeat(1_000_000) })),
  ];
}

async function attack(target: Target, server: Server, all: readonly Request[]): Promise<Values> {
  const memory = watchMemory(target);
  const watch = await watchOk(server.port);
  let slowest_ms = 0;
  try {
    for (const { path, ...options } of all) {
      const started_at = performance.now();
      await server.send("POST", path, options);
      slowest_ms = Math.max(slowest_ms, performance.now() - started_at);
    }
  } finally {
    memory.stop();
  }
  const { p99_ms, max_ms } = await watch.stop();
  const rss_mb = memory.stop();
  return {
    hostile_ok_p99_ms: p99_ms,
    hostile_ok_max_ms: max_ms,
    hostile_max_ms: slowest_ms,
    ...(rss_mb.length > 0 && { hostile_rss_mb: Math.max(...rss_mb) }),
  };
}
