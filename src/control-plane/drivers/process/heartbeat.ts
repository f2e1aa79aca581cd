import { stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** Both sides look at the file this often; more often where the limit is short. */
const INTERVAL_MS = 10_000;

const intervalOf = (orphan_ms: number): number => Math.min(INTERVAL_MS, orphan_ms / 4);

/**
 * Touches the file that instances watch. Every control plane on the data folder does, so an instance is kept by any of them. The
 * file is made by {@link makeHeartbeat}, with the first instance.
 */
export function startHeartbeat(file: string, orphan_ms: number): { stop(): void } {
  const touch = () => void utimes(file, new Date(), new Date()).catch(() => undefined);
  touch();
  const timer = setInterval(touch, intervalOf(orphan_ms)).unref();
  return { stop: () => clearInterval(timer) };
}

export const makeHeartbeat = (file: string): Promise<void> => writeFile(file, "", { flag: "a", mode: 0o600 });

export interface Orphanhood {
  heartbeat_file: string;
  data_dir: string;
  /** How long an instance serves without a control plane. */
  orphan_ms: number;
}

/**
 * In an instance: resolves with the reason when it is to end because no control plane keeps it. Time is measured by this process'
 * monotonic clock, so that neither a changed clock nor a suspended machine counts.
 */
export async function orphaned({ heartbeat_file, data_dir, orphan_ms }: Orphanhood): Promise<string> {
  let [last, seen_at] = [0, performance.now()];
  for (;;) {
    await delay(intervalOf(orphan_ms), undefined, { ref: false });
    for (const path of [data_dir, heartbeat_file]) if (await isGone(path)) return `${path} was deleted`;
    const touched = await stat(heartbeat_file).then(
      ({ mtimeMs }) => mtimeMs,
      () => last,
    );
    if (touched !== last) [last, seen_at] = [touched, performance.now()];
    else if (performance.now() - seen_at >= orphan_ms) return `no control plane was seen for ${orphan_ms / 1000} s`;
  }
}

/** A folder that cannot be read at the moment is not gone. */
const isGone = (path: string): Promise<boolean> =>
  stat(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT" || code === "ENOTDIR",
  );
