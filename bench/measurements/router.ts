import { v7 } from "uuid";
import { drive, median } from "../load.ts";
import type { Figure, Measurement, Sizes, Values } from "../measurement.ts";
import { type BenchRouter, startRouter } from "../start-router.ts";
import { type Server, serverOf } from "../target.ts";

const AT_ONCE = 32;
const SWITCHES = 50;
/** Direct and through the router take turns this often, so that the machine's other work meets both. */
const TURNS = 5;

type Ask = Server["ask"];
interface Asked {
  key: string;
  title: string;
  call(ask: Ask): Promise<unknown>;
  /** Share of the direct throughput that is to be left. */
  at_least?: number;
}

const ASKED: readonly Asked[] = [
  { key: "ok", title: "GET /ok", call: (ask) => ask("GET", "/ok") },
  {
    key: "wait",
    title: "create + wait",
    call: (ask) =>
      ask("POST", `/threads/${v7()}/runs/wait`, {
        body: { assistant_id: "step", input: { text: "hello" }, if_not_exists: "create" },
      }),
    at_least: 0.8,
  },
];

const figuresOf = ({ key, title, at_least }: Asked): Figure[] => [
  { key: `${key}_direct_ms`, label: `${title}, straight to the server: p50, ms` },
  { key: `${key}_router_ms`, label: `${title}, through the router: p50, ms` },
  {
    key: `${key}_overhead_ms`,
    label: "... more than straight, ms",
    goal: { against: "itself", at_most: 1 },
  },
  { key: `${key}_direct_per_second`, label: `${title}, ${AT_ONCE} at once, straight: requests/s` },
  { key: `${key}_router_per_second`, label: `${title}, ${AT_ONCE} at once, through the router: requests/s` },
  { key: `${key}_cpu_ms`, label: "... CPU time of the router a request, ms" },
  {
    key: `${key}_share`,
    label: "... of what straight is",
    ...(at_least !== undefined && { goal: { against: "itself", at_least } as const }),
  },
];

/** What the router adds to a request, and what a switch costs. */
export const router: Measurement = {
  name: "router",
  without: ["floor", "peer"],
  figures: [
    ...ASKED.flatMap(figuresOf),
    {
      key: "switch_failed",
      label: `requests that failed during ${SWITCHES} switches`,
      goal: { against: "itself", at_most: 0 },
    },
    { key: "switch_per_second", label: `... ${AT_ONCE} at once: requests/s` },
  ],
  async measure(start, sizes) {
    await using target = await start();
    await using other = await start();
    await using through = await startRouter();
    const [server, next] = [serverOf(target), serverOf(other)];
    await through.lead(server.port);
    const values: Values = {};
    for (const asked of ASKED) Object.assign(values, await measureSideBySide(asked, server, through, sizes));
    return { ...values, ...(await measureSwitches(through, [server, next], sizes)) };
  },
};

async function measureSideBySide(
  { key, call }: Asked,
  server: Server,
  through: BenchRouter,
  { ok_calls, warm_up_seconds, load_seconds }: Sizes,
): Promise<Values> {
  const ways = { direct: server.ask.bind(server), router: through.ask };
  for (const ask of Object.values(ways)) await drive(8, { seconds: warm_up_seconds / 2 }, () => call(ask));
  const values: Values = {};
  for (const [what, concurrency] of [
    ["ms", 1],
    ["per_second", AT_ONCE],
  ] as const) {
    const found: Record<string, number[]> = { direct: [], router: [] };
    const before = through.usage();
    let calls = 0;
    for (let turn = 0; turn < TURNS; turn++)
      for (const [way, ask] of Object.entries(ways)) {
        const until = what === "ms" ? { calls: Math.ceil(ok_calls / TURNS) } : { seconds: load_seconds / TURNS };
        const load = await drive(concurrency, until, () => call(ask));
        if (way === "router") calls += load.calls;
        found[way]?.push(what === "ms" ? load.p50_ms : load.per_second);
      }
    const after = through.usage();
    // The last one counts: of many requests at once.
    if (before && after) values[`${key}_cpu_ms`] = (after.cpu_ms - before.cpu_ms) / calls;
    for (const [way, all] of Object.entries(found)) values[`${key}_${way}_${what}`] = median(all);
  }
  const at = (name: string) => values[`${key}_${name}`] ?? Number.NaN;
  values[`${key}_overhead_ms`] = at("router_ms") - at("direct_ms");
  values[`${key}_share`] = at("router_per_second") / at("direct_per_second");
  return values;
}

/** Requests of all kinds without a pause, while the router goes to and fro between two servers. */
async function measureSwitches(
  through: BenchRouter,
  servers: readonly Server[],
  { switched_calls: calls }: Sizes,
): Promise<Values> {
  let failed = 0;
  let begun = 0;
  let switched = 0;
  let switching = Promise.resolve();
  const { per_second } = await drive(AT_ONCE, { calls }, async () => {
    begun += 1;
    if (begun * SWITCHES > switched * calls) {
      switched += 1;
      const { port } = servers[switched % servers.length] as Server;
      switching = switching.then(() => through.lead(port));
    }
    const { call } = ASKED[begun % ASKED.length] as Asked;
    await call(through.ask).catch(() => {
      failed += 1;
    });
  });
  await switching;
  return { switch_failed: failed, switch_per_second: per_second };
}
