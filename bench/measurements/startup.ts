import { randomUUID } from "node:crypto";
import type { Measurement } from "../measurement.ts";

/** Times since the spawn of the process. The second figure exists because a server may answer before it has loaded its graphs. */
export const startup: Measurement = {
  name: "startup",
  figures: [
    {
      key: "ok_ms",
      label: "start-up: first 200 of GET /ok (floor: graphs imported), ms",
      goal: { against: "peer", max: 0.35 },
    },
    { key: "first_run_ms", label: "start-up: response to the first run, ms" },
  ],
  times_per_round: 3,
  async measure(start) {
    await using target = await start();
    await target.run("step", { text: "hello" }, randomUUID());
    return { ok_ms: target.ready_ms, first_run_ms: target.age_ms() };
  },
};
