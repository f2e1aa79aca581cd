import { setTimeout as sleep } from "node:timers/promises";
import type { LogLine, Logs } from "../../control-plane/contract/logs.ts";
import { escapeControlCharacters } from "../../platform/lib/sanitize-output.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { CommandError, type Target } from "../command.ts";
import { requestJson } from "../service-client.ts";
import { findDeployment, type RevisionKey } from "./deployments.ts";

export interface LogFlags {
  follow?: boolean;
  type: "build" | "deploy";
  revision?: string;
  limit: number;
  level?: string;
  json?: boolean;
}

const POLL_MS = 1000;

/** Each poll rereads this period: the service stores lines in batches, so a line can become available after newer ones. */
const MAX_DELAY_MS = 5000;

const PAGE_LINES = 1_000;

/** Prints the last lines, and with `--follow` each new line until the command is interrupted. */
export async function printLogs(name: string, flags: LogFlags, target: Target): Promise<void> {
  // Node.js ignores SIGPIPE, so `--follow` would go on after the end of a pipe such as `| head`.
  process.stdout.on("error", () => process.exit(0));
  const deployment = await findDeployment(target, name);
  const revision = flags.revision ?? (flags.type === "build" ? deployment.latest_revision_id : undefined);
  if (revision === null)
    throw new CommandError(
      `Deployment "${deployment.name}" has no revision, so there are no build logs. Deploy a revision first.`,
    );
  const path = `/v2/deployments/${deployment.id}${revision ? `/revisions/${revision}` : ""}/logs`;
  const readPage = (parameters: Record<string, string>): Promise<Logs> => {
    const query = new URLSearchParams({ type: flags.type, ...(flags.level && { level: flags.level }), ...parameters });
    return requestJson(target, "GET", `${path}?${query}`);
  };
  const { logs } = await readPage({ order: "desc", limit: String(flags.limit) });
  const last = logs.reverse();
  for (const line of last) print(line, flags);
  if (flags.follow) await follow(readPage, last, flags);
}

async function follow(
  readPage: (parameters: Record<string, string>) => Promise<Logs>,
  printed: readonly LogLine[],
  flags: LogFlags,
): Promise<never> {
  // Lines older than the first printed line exceed --limit, so they are not printed.
  const oldest = Date.parse(printed.at(0)?.timestamp ?? isoOfMilliseconds(0));
  let newest = Date.parse(printed.at(-1)?.timestamp ?? isoOfMilliseconds(0));
  let seen = new Map(printed.map((line) => [line.id, Date.parse(line.timestamp)]));
  for (;;) {
    await sleep(POLL_MS);
    const start_time = isoOfMilliseconds(Math.max(oldest, newest - MAX_DELAY_MS));
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await readPage({
        order: "asc",
        limit: `${PAGE_LINES}`,
        start_time,
        ...(cursor && { offset: cursor }),
      });
      for (const line of page.logs) {
        if (seen.has(line.id)) continue;
        print(line, flags);
        seen.set(line.id, Date.parse(line.timestamp));
        newest = Math.max(newest, Date.parse(line.timestamp));
      }
      cursor = page.next_offset;
    }
    seen = new Map([...seen].filter(([, time]) => time >= newest - MAX_DELAY_MS));
  }
}

function print(line: LogLine, { json }: LogFlags): void {
  const time = line.timestamp.slice(0, 23).replace("T", " ");
  console.log(escapeControlCharacters(json ? JSON.stringify(line) : `${time} ${line.level.padEnd(8)} ${line.message}`));
}

/** @returns a function that returns the build log lines that were added since its last call */
export function buildLogReader(target: Target, key: RevisionKey): () => Promise<LogLine[]> {
  const seen = new Set<string>();
  let offset: string | undefined;
  return async () => {
    const fresh: LogLine[] = [];
    for (;;) {
      const query = { order: "asc", limit: PAGE_LINES, ...(offset && { offset }) };
      const { logs, next_offset } = await readRevisionLogs(target, key, "build_logs", query);
      // The last page of a finished revision has no next offset, so later calls read it again and skip known lines.
      fresh.push(...logs.filter(({ id }) => !seen.has(id)));
      for (const { id } of logs) seen.add(id);
      offset = next_offset ?? offset;
      if (logs.length < PAGE_LINES) return fresh;
    }
  };
}

/** Reads the last 20 lines of the deployment log, oldest first. */
export async function readLastLogs(target: Target, key: RevisionKey): Promise<LogLine[]> {
  const { logs } = await readRevisionLogs(target, key, "deploy_logs", { order: "desc", limit: 20 });
  return logs.reverse();
}

const readRevisionLogs = (
  target: Target,
  { deployment_id, revision_id }: RevisionKey,
  kind: "build_logs" | "deploy_logs",
  query: { order: string; limit: number; offset?: string },
): Promise<Logs> =>
  requestJson(target, "POST", `/v1/projects/${deployment_id}/revisions/${revision_id}/${kind}`, query);
