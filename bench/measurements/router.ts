import { v7 } from "uuid";
import { drive, median } from "../load.ts";
import type { Figure, Measurement, Sizes, Values } from "../measurement.ts";
import { type BenchRouter, startRouter } from "../start-router.ts";
import { type Server, serverOf } from "../target.ts";

const CONCURRENCY = 32;
const SWITCHES = 50;
/** Direct requests and requests through the router alternate this often, so that other load of the machine affects both. */
const TURNS = 5;

type Send = Server["send"];

interface RequestKind {
  key: string;
  title: string;
  call(send: Send): Promise<unknown>;
  /** Minimum share of the direct throughput. */
  min?: number;
}

const REQUEST_KINDS: readonly RequestKind[] = [
  // Not /ok, which the router does not forward.
  { key: "info", title: "GET /info", call: (send) => send("GET", "/info") },
  {
    key: "wait",
    title: "create + wait",
    call: (send) =>
      send("POST", `/threads/${v7()}/runs/wait`, {
        body: { assistant_id: "step", input: { text: "hello" }, if_not_exists: "create" },
      }),
    min: 0.8,
  },
];

const figuresOf = ({ key, title, min }: RequestKind): Figure[] => [
  { key: `${key}_direct_ms`, label: `${title}, direct: p50, ms` },
  { key: `${key}_router_ms`, label: `${title}, through the router: p50, ms` },
  {
    key: `${key}_overhead_ms`,
    label: "... overhead, ms",
    goal: { against: "itself", max: 1 },
  },
  { key: `${key}_direct_per_second`, label: `${title}, ${CONCURRENCY} concurrent, direct: requests/s` },
  { key: `${key}_router_per_second`, label: `${title}, ${CONCURRENCY} concurrent, through the router: requests/s` },
  { key: `${key}_cpu_ms`, label: "... CPU time of the router per request, ms" },
  {
    key: `${key}_share`,
    label: "... share of direct",
    ...(min !== undefined && { goal: { against: "itself", min } as const }),
  },
];

/** The overhead of the router per request, and the cost of a switch. */
export const router: Measurement = {
  name: "router",
  without: ["floor", "peer"],
  figures: [
    ...REQUEST_KINDS.flatMap(figuresOf),
    {
      key: "switch_failed",
      label: `requests that failed during ${SWITCHES} switches`,
      goal: { against: "itself", max: 0 },
    },
    { key: "switch_per_second", label: `... ${CONCURRENCY} concurrent: requests/s` },
  ],
  async measure(start, sizes) {
    await using target = await start();
    await using other = await start();
    await using through = await startRouter();
    const [server, next] = [serverOf(target), serverOf(other)];
    await through.switchTo(server.port);
    const values: Values = {};
    for (const kind of REQUEST_KINDS) Object.assign(values, await measureSideBySide(kind, server, through, sizes));
    return { ...values, ...(await measureSwitches(through, [server, next], sizes)) };
  },
};

async function measureSideBySide(
  { key, call }: RequestKind,
  server: Server,
  through: BenchRouter,
  { ok_calls, warm_up_seconds, load_seconds }: Sizes,
): Promise<Values> {
  const ways = { direct: server.send.bind(server), router: through.send };
  for (const send of Object.values(ways)) await drive(8, { seconds: warm_up_seconds / 2 }, () => call(send));
  const values: Values = {};
  for (const [unit, concurrency] of [
    ["ms", 1],
    ["per_second", CONCURRENCY],
  ] as const) {
    const found: Record<string, number[]> = { direct: [], router: [] };
    const before = through.usage();
    let calls = 0;
    for (let turn = 0; turn < TURNS; turn++)
      for (const [way, send] of Object.entries(ways)) {
        const until = unit === "ms" ? { calls: Math.ceil(ok_calls / TURNS) } : { seconds: load_seconds / TURNS };
        const load = await drive(concurrency, until, () => call(send));
        if (way === "router") calls += load.calls;
        found[way]?.push(unit === "ms" ? load.p50_ms : load.per_second);
      }
    const after = through.usage();
    // The last value, with concurrent requests, is the result.
    if (before && after) values[`${key}_cpu_ms`] = (after.cpu_ms - before.cpu_ms) / calls;
    for (const [way, all] of Object.entries(found)) values[`${key}_${way}_${unit}`] = median(all);
  }
  const at = (name: string) => values[`${key}_${name}`] ?? Number.NaN;
  values[`${key}_overhead_ms`] = at("router_ms") - at("direct_ms");
  values[`${key}_share`] = at("router_per_second") / at("direct_per_second");
  return values;
}

/** Continuous requests of all kinds while the router switches between two servers. */
async function measureSwitches(
  through: BenchRouter,
  servers: readonly Server[],
  { switched_calls: calls }: Sizes,
): Promise<Values> {
  let failed = 0;
  let started = 0;
  let switched = 0;
  let switching = Promise.resolve();
  const { per_second } = await drive(CONCURRENCY, { calls }, async () => {
    started += 1;
    if (started * SWITCHES > switched * calls) {
      switched += 1;
      const { port } = servers[switched % servers.length] as Server;
      switching = switching.then(() => through.switchTo(port));
    }
    const { call } = REQUEST_KINDS[started % REQUEST_KINDS.length] as RequestKind;
    await call(through.send).catch(() => {
      failed += 1;
    });
  });
  await switching;
  return { switch_failed: failed, switch_per_second: per_second };
}
