import { setTimeout as pause } from "node:timers/promises";
import type { LogLine, Logs } from "../../control-plane/contract/logs.ts";
import { printable } from "../../platform/lib/printable.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { askControl, type Target } from "../experiments/api.ts";
import { CommandError } from "../experiments/command-error.ts";
import { findDeployment } from "./find.ts";

export interface LogFlags {
  follow?: boolean;
  type: "build" | "deploy";
  revision?: string;
  limit: number;
  level?: string;
  json?: boolean;
}

const POLL_MS = 1000;

/** Lines arrive in batches, and some a little later than younger ones: so far back is looked for them. */
const LATE_MS = 5000;

/** Prints the last lines, and with `--follow` what comes after them, until the process is ended. */
export async function showLogs(name: string, flags: LogFlags, target: Target): Promise<void> {
  const deployment = await findDeployment(target, name);
  const revision = flags.revision ?? (flags.type === "build" ? deployment.latest_revision_id : undefined);
  if (revision === null) throw new CommandError(`"${deployment.name}" has no revision yet, so nothing was built.`);
  const at = `/v2/deployments/${deployment.id}${revision ? `/revisions/${revision}` : ""}/logs`;
  const ask = async (more: Record<string, string>): Promise<Logs> => {
    const query = new URLSearchParams({ type: flags.type, ...(flags.level && { level: flags.level }), ...more });
    return (await askControl(target, "GET", `${at}?${query}`)) as Logs;
  };
  const { logs } = await ask({ order: "desc", limit: String(flags.limit) });
  const last = logs.reverse();
  for (const line of last) print(line, flags);
  if (flags.follow) await follow(ask, last, flags);
}

async function follow(
  ask: (more: Record<string, string>) => Promise<Logs>,
  before: readonly LogLine[],
  flags: LogFlags,
): Promise<never> {
  // Lines of the past that were not asked for are not shown later either.
  const begun = Date.parse(before.at(0)?.timestamp ?? isoOfMilliseconds(0));
  let newest = Date.parse(before.at(-1)?.timestamp ?? isoOfMilliseconds(0));
  let seen = new Map(before.map((line) => [line.id, Date.parse(line.timestamp)]));
  for (;;) {
    await pause(POLL_MS);
    const start_time = isoOfMilliseconds(Math.max(begun, newest - LATE_MS));
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: Logs = await ask({ order: "asc", limit: "1000", start_time, ...(cursor && { offset: cursor }) });
      for (const line of page.logs) {
        if (seen.has(line.id)) continue;
        print(line, flags);
        seen.set(line.id, Date.parse(line.timestamp));
        newest = Math.max(newest, Date.parse(line.timestamp));
      }
      cursor = page.next_offset;
    }
    seen = new Map([...seen].filter(([, time]) => time >= newest - LATE_MS));
  }
}

function print(line: LogLine, { json }: LogFlags): void {
  const time = line.timestamp.slice(0, 23).replace("T", " ");
  console.log(printable(json ? JSON.stringify(line) : `${time} ${line.level.padEnd(8)} ${line.message}`));
}
