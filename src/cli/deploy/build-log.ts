import type { LogLine, Logs } from "../../control-plane/contract/logs.ts";
import { askControl, type Target } from "../experiments/api.ts";

const PAGE = 1_000;

/** What a build has written since the last look, each line once. */
export class BuildLog {
  readonly #target: Target;
  readonly #path: string;
  readonly #seen = new Set<string>();
  #offset: string | undefined;

  constructor(target: Target, { deployment_id, revision_id }: { deployment_id: string; revision_id: string }) {
    this.#target = target;
    this.#path = `/v1/projects/${deployment_id}/revisions/${revision_id}/build_logs`;
  }

  async more(): Promise<LogLine[]> {
    const fresh: LogLine[] = [];
    for (;;) {
      const query = { order: "asc", limit: PAGE, ...(this.#offset && { offset: this.#offset }) };
      const { logs, next_offset } = (await askControl(this.#target, "POST", this.#path, query)) as Logs;
      // The last page of a revision that has ended leads nowhere, so it comes again.
      fresh.push(...logs.filter(({ id }) => !this.#seen.has(id)));
      for (const { id } of logs) this.#seen.add(id);
      this.#offset = next_offset ?? this.#offset;
      if (logs.length < PAGE) return fresh;
    }
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
