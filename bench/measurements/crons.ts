import { drive, quantile, sleep } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { type Server, serverOf } from "../target.ts";

const WRITERS = 32;
const MINUTE_MS = 60_000;
/** The ticks that are measured; each starts a sixtieth of the crons. */
const TICKS = 2;
/** The last runs of a tick may start this long after it. */
const SETTLE_MS = 5_000;

interface RunTimes {
  created_at: string;
  started_at: string | null;
}

/** Hourly crons, as many in each minute of the hour; then the times between the ticks and the starts of their runs. */
export const crons: Measurement = {
  name: "crons",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "crons_created_per_s", label: "10,000 hourly crons (quick: 600): created by 32 clients, 1/s" },
    { key: "cron_runs", label: "... runs of two ticks" },
    { key: "cron_create_p99_ms", label: "... tick to creation of its run, p99, ms" },
    { key: "cron_start_p50_ms", label: "... tick to start of its run, p50, ms" },
    { key: "cron_start_p99_ms", label: "... p99, ms", goal: { against: "itself", max: 1_000 } },
    { key: "cron_unstarted", label: "... crons without a run", goal: { against: "itself", max: 0 } },
  ],
  async measure(start, sizes) {
    await using target = await start();
    const server = serverOf(target);
    let next = 0;
    const create = () => {
      const body = { assistant_id: "step", schedule: `${next++ % 60} * * * *`, input: { text: "hello" } };
      return server.send("POST", "/runs/crons", { body });
    };
    const { per_second } = await drive(WRITERS, { calls: sizes.crons }, create);
    const first_tick = (Math.floor(Date.now() / MINUTE_MS) + 1) * MINUTE_MS;
    const end = first_tick + (TICKS - 1) * MINUTE_MS + SETTLE_MS;
    await sleep(end - Date.now());
    const runs = await runsBetween(server, first_tick, end);
    const afterTick = (time: string, created_at: string) =>
      Date.parse(time) - Math.floor(Date.parse(created_at) / MINUTE_MS) * MINUTE_MS;
    const delays = runs.flatMap(({ created_at, started_at }) =>
      started_at === null ? [] : afterTick(started_at, created_at),
    );
    const creations = runs.map(({ created_at }) => afterTick(created_at, created_at));
    return {
      crons_created_per_s: per_second,
      cron_runs: runs.length,
      cron_create_p99_ms: quantile(creations, 0.99),
      cron_start_p50_ms: quantile(delays, 0.5),
      cron_start_p99_ms: quantile(delays, 0.99),
      cron_unstarted: Math.floor(sizes.crons / 60) * TICKS - delays.length,
    };
  },
};

async function runsBetween(server: Server, from_ms: number, until_ms: number): Promise<RunTimes[]> {
  const runs: RunTimes[] = [];
  const iso = (ms: number) => new Date(ms).toISOString();
  for (let cursor = ""; ; ) {
    const query = new URLSearchParams({ created_from: iso(from_ms), created_until: iso(until_ms), limit: "500" });
    if (cursor !== "") query.set("cursor", cursor);
    const page = JSON.parse(await server.send("GET", `/app/api/runs?${query}`)) as {
      runs: RunTimes[];
      next: string | null;
    };
    runs.push(...page.runs);
    if (page.next === null) return runs;
    cursor = page.next;
  }
}
