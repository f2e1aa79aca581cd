import { drive, quantile } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { serverOf } from "../target.ts";

const NAMESPACES = 100;
const WRITERS = 32;
const KINDS = 10;

const itself = (max: number) => ({ against: "itself", max }) as const;

/** 100,000 items with vectors of 384 dimensions in 100 namespaces, which clients store one by one; then what they read. */
export const store: Measurement = {
  name: "store",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "puts_per_s", label: "store: items with a vector stored by 32 clients, 1/s" },
    { key: "get_p99_ms", label: "... get of 100,000 items, p99, ms", goal: itself(5) },
    { key: "newest_p95_ms", label: "... the 10 newest, p95, ms" },
    { key: "filter_p95_ms", label: "... filter in a namespace of 1,000, p95, ms", goal: itself(20) },
    {
      key: "wide_filter_p95_ms",
      label: "... filter across all namespaces that matches 1 in 10 items, p95, ms",
      goal: itself(20),
    },
    { key: "rare_filter_p95_ms", label: "... filter across all namespaces that matches 1 item, p95, ms" },
    { key: "first_vector_ms", label: "... first search by vector, which loads the vectors, ms" },
    { key: "vector_p95_ms", label: "... search by vector in all namespaces, p95, ms", goal: itself(60) },
    { key: "near_vector_p95_ms", label: "... search by vector in a namespace, p95, ms" },
  ],
  async measure(start, { store_items, experiment_calls }) {
    await using target = await start();
    const server = serverOf(target);
    const namespaceOf = (n: number) => ["users", `user-${n % NAMESPACES}`];
    let next = 0;
    const put = () => {
      const n = next++;
      const value = { text: `the note ${n}`, kind: `kind-${n % KINDS}`, n };
      const body = { namespace: namespaceOf(n), key: `note-${n}`, value };
      return server.send("PUT", "/store/items", { body, status: 204 });
    };
    const { per_second } = await drive(WRITERS, { calls: store_items }, put);
    // As Postgres does by itself within a minute.
    await server.execute("analyze");
    const search = (body: object) => server.send("POST", "/store/items/search", { body });
    const random = () => Math.floor(Math.random() * store_items);
    const get = () => {
      const n = random();
      return server.send("GET", `/store/items?namespace=${namespaceOf(n).join(".")}&key=note-${n}`);
    };
    const kind = () => ({ kind: `kind-${random() % KINDS}` });
    const query = () => `the note ${random()}`;
    const all = ["users"];
    const started_at = performance.now();
    await search({ namespace_prefix: all, query: query() });
    const first_vector_ms = performance.now() - started_at;
    const timed = (share: number, call: () => Promise<unknown>) => quantileOf(share, experiment_calls * 5, call);
    return {
      puts_per_s: per_second,
      first_vector_ms,
      get_p99_ms: await timed(0.99, get),
      newest_p95_ms: await timed(0.95, () => search({ namespace_prefix: all })),
      filter_p95_ms: await timed(0.95, () => search({ namespace_prefix: namespaceOf(random()), filter: kind() })),
      wide_filter_p95_ms: await timed(0.95, () => search({ namespace_prefix: all, filter: kind() })),
      rare_filter_p95_ms: await quantileOf(0.95, 20, () => search({ namespace_prefix: all, filter: { n: random() } })),
      vector_p95_ms: await timed(0.95, () => search({ namespace_prefix: all, query: query() })),
      near_vector_p95_ms: await timed(0.95, () => search({ namespace_prefix: namespaceOf(random()), query: query() })),
    };
  },
};

async function quantileOf(share: number, calls: number, call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < calls; n++) {
    const started_at = performance.now();
    await call();
    times.push(performance.now() - started_at);
  }
  return quantile(times, share);
}
