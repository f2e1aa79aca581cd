import type { LogLine, Logs } from "../../contract/control/logs.ts";
import { isoTime } from "../../lib/clock.ts";
import { askControl, type Target } from "../experiments/api.ts";

/** Lines arrive in batches, and some a little later than younger ones: so far back is looked for them. */
const LATE_MS = 5_000;

/** What a build has written since the last look, each line once. */
export class BuildLog {
  readonly #target: Target;
  readonly #path: string;
  #seen = new Map<string, number>();
  #newest = 0;

  constructor(target: Target, { deployment_id, revision_id }: { deployment_id: string; revision_id: string }) {
    this.#target = target;
    this.#path = `/v1/projects/${deployment_id}/revisions/${revision_id}/build_logs`;
  }

  async more(): Promise<LogLine[]> {
    const start_time = isoTime(Math.max(0, this.#newest - LATE_MS));
    const fresh: LogLine[] = [];
    for (let offset: string | null | undefined; offset !== null; ) {
      const query = { order: "asc", limit: 1000, start_time, ...(offset && { offset }) };
      const page = (await askControl(this.#target, "POST", this.#path, query)) as Logs;
      fresh.push(...page.logs.filter(({ id }) => !this.#seen.has(id)));
      offset = page.next_offset;
    }
    for (const { id, timestamp } of fresh) {
      this.#seen.set(id, Date.parse(timestamp));
      this.#newest = Math.max(this.#newest, Date.parse(timestamp));
    }
    this.#seen = new Map([...this.#seen].filter(([, at]) => at >= this.#newest - LATE_MS));
    return fresh;
  }
}

/** The last lines of a build, or of what runs. */
export async function lastLines(
  target: Target,
  { deployment_id, revision_id }: { deployment_id: string; revision_id: string },
  kind: "build_logs" | "deploy_logs",
): Promise<LogLine[]> {
  const path = `/v1/projects/${deployment_id}/revisions/${revision_id}/${kind}`;
  const { logs } = (await askControl(target, "POST", path, { order: "desc", limit: 20 })) as Logs;
  return logs.reverse();
}
