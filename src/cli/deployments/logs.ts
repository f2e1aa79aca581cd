import { setTimeout as sleep } from "node:timers/promises";
import type { LogLine, Logs } from "../../control-plane/contract/logs.ts";
import { escapeControlCharacters } from "../../platform/lib/sanitize-output.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { CommandError, type Target } from "../command.ts";
import { requestControlPlane } from "../service-client.ts";
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

/** The service stores lines in batches, so a line can appear after younger ones. Each poll reads this far back. */
const MAX_DELAY_MS = 5000;

/** Lines per request of {@link BuildLog}. */
const PAGE_LINES = 1_000;

/** Prints the last lines, and with `--follow` each new line until the command is interrupted. */
export async function printLogs(name: string, flags: LogFlags, target: Target): Promise<void> {
  const deployment = await findDeployment(target, name);
  const revision = flags.revision ?? (flags.type === "build" ? deployment.latest_revision_id : undefined);
  if (revision === null)
    throw new CommandError(`"${deployment.name}" has no revision, so it has no build logs. Deploy it first.`);
  const path = `/v2/deployments/${deployment.id}${revision ? `/revisions/${revision}` : ""}/logs`;
  const readPage = async (parameters: Record<string, string>): Promise<Logs> => {
    const query = new URLSearchParams({ type: flags.type, ...(flags.level && { level: flags.level }), ...parameters });
    return (await requestControlPlane(target, "GET", `${path}?${query}`)) as Logs;
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
  // Lines older than the first printed line are beyond --limit and stay hidden.
  const oldest = Date.parse(printed.at(0)?.timestamp ?? isoOfMilliseconds(0));
  let newest = Date.parse(printed.at(-1)?.timestamp ?? isoOfMilliseconds(0));
  let seen = new Map(printed.map((line) => [line.id, Date.parse(line.timestamp)]));
  for (;;) {
    await sleep(POLL_MS);
    const start_time = isoOfMilliseconds(Math.max(oldest, newest - MAX_DELAY_MS));
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await readPage({ order: "asc", limit: "1000", start_time, ...(cursor && { offset: cursor }) });
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

/** The build log of a revision, read in increments. */
export class BuildLog {
  readonly #target: Target;
  readonly #key: RevisionKey;
  readonly #seen = new Set<string>();
  #offset: string | undefined;

  constructor(target: Target, key: RevisionKey) {
    this.#target = target;
    this.#key = key;
  }

  /** The lines since the last call, each line once. */
  async readNew(): Promise<LogLine[]> {
    const fresh: LogLine[] = [];
    for (;;) {
      const query = { order: "asc", limit: PAGE_LINES, ...(this.#offset && { offset: this.#offset }) };
      const { logs, next_offset } = await readRevisionLogs(this.#target, this.#key, "build_logs", query);
      // The last page of a finished revision has no next offset, so it is read again.
      fresh.push(...logs.filter(({ id }) => !this.#seen.has(id)));
      for (const { id } of logs) this.#seen.add(id);
      this.#offset = next_offset ?? this.#offset;
      if (logs.length < PAGE_LINES) return fresh;
    }
  }
}

/** The last 20 lines, oldest first. */
export async function readLastLines(target: Target, key: RevisionKey, kind: LogKind): Promise<LogLine[]> {
  const { logs } = await readRevisionLogs(target, key, kind, { order: "desc", limit: 20 });
  return logs.reverse();
}

type LogKind = "build_logs" | "deploy_logs";

const readRevisionLogs = async (
  target: Target,
  { deployment_id, revision_id }: RevisionKey,
  kind: LogKind,
  query: { order: string; limit: number; offset?: string },
): Promise<Logs> => {
  const path = `/v1/projects/${deployment_id}/revisions/${revision_id}/${kind}`;
  return (await requestControlPlane(target, "POST", path, query)) as Logs;
};
