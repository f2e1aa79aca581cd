import { drive } from "../load.ts";
import type { Figure, Sizes, Values } from "../measurement.ts";
import type { Server } from "../target.ts";

/** The latency of GET /ok, the base of other latencies of the same measurement. */
export interface OkFigures {
  p50: Figure;
  p99: Figure;
}

export const okFigures = (title: string): OkFigures => ({
  p50: { key: "ok_p50_ms", label: `${title}: GET /ok of the idle process, p50, ms` },
  p99: { key: "ok_p99_ms", label: `${title}: GET /ok of the idle process, p99, ms` },
});

/** Sequential requests to an idle process. */
export async function measureOk(server: Server, { ok_calls: calls }: Sizes): Promise<Values> {
  const call = () => server.send("GET", "/ok");
  await drive(1, { calls }, call);
  const { p50_ms, p99_ms } = await drive(1, { calls }, call);
  return { ok_p50_ms: p50_ms, ok_p99_ms: p99_ms };
}
