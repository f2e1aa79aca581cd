import { stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** Interval at which control planes touch the file and instances check it. A small `orphan_ms` reduces the interval. */
const INTERVAL_MS = 10_000;

const intervalOf = (orphan_ms: number): number => Math.min(INTERVAL_MS, orphan_ms / 4);

/**
 * Touches the heartbeat file at intervals. Instances exit when no control plane of the data folder has touched the file for `orphan_ms`.
 * {@link makeHeartbeat} creates the file when the first instance starts.
 */
export function startHeartbeat(file: string, orphan_ms: number): { stop(): void } {
  const touch = () => void utimes(file, new Date(), new Date()).catch(() => undefined);
  touch();
  const timer = setInterval(touch, intervalOf(orphan_ms)).unref();
  return { stop: () => clearInterval(timer) };
}

export const makeHeartbeat = (file: string): Promise<void> => writeFile(file, "", { flag: "a", mode: 0o600 });

export interface OrphanLimits {
  heartbeat_file: string;
  data_dir: string;
  /** An instance exits when no control plane has been running for this long. */
  orphan_ms: number;
}

/**
 * Runs in an instance. Resolves with the reason when the instance must exit: the data folder or heartbeat file was deleted, or no
 * control plane has run for `orphan_ms`. The clock is monotonic, so clock changes and suspension of the machine have no effect.
 */
export async function waitUntilOrphaned({ heartbeat_file, data_dir, orphan_ms }: OrphanLimits): Promise<string> {
  let [last, seen_at] = [0, performance.now()];
  for (;;) {
    await delay(intervalOf(orphan_ms), undefined, { ref: false });
    for (const path of [data_dir, heartbeat_file]) if (await isDeleted(path)) return `${path} was deleted`;
    const touched = await stat(heartbeat_file).then(
      ({ mtimeMs }) => mtimeMs,
      () => last,
    );
    if (touched !== last) [last, seen_at] = [touched, performance.now()];
    else if (performance.now() - seen_at >= orphan_ms)
      return `for ${orphan_ms / 1000} s, no control plane has updated the heartbeat file`;
  }
}

/** Whether a path no longer exists; false for a path that is only temporarily unreadable. */
const isDeleted = (path: string): Promise<boolean> =>
  stat(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT" || code === "ENOTDIR",
  );
