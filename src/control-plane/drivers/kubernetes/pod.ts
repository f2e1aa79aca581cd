import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { V1ContainerStatus, V1Pod } from "@kubernetes/client-node";
import type { ContainerLog, LogFrame } from "../log-follower.ts";
import { LineSplitter, stderrTail } from "../log-line.ts";
import type { Cluster } from "./cluster.ts";
import { CONTAINER, selectorOf } from "./manifests.ts";

/** Identifies one run of the container. Kubernetes restarts a container in its pod, and replaces pods. */
export interface ContainerRun {
  pod: string;
  restarts: number;
}

export const handleOf = ({ pod, restarts }: ContainerRun): string => `${pod}/${restarts}`;

export function runFrom(handle: string): ContainerRun {
  const [pod = "", restarts] = handle.split("/");
  return { pod, restarts: Number(restarts ?? 0) };
}

const statusOf = ({ status }: V1Pod): V1ContainerStatus | undefined => status?.containerStatuses?.[0];

export const runOf = (pod: V1Pod): ContainerRun => ({
  pod: pod.metadata?.name ?? "",
  restarts: statusOf(pod)?.restartCount ?? 0,
});

/** Returns the newest pod that is not being deleted. */
export const currentPod = (pods: readonly V1Pod[]): V1Pod | undefined =>
  pods
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .toSorted((a, b) => createdAt(b) - createdAt(a))[0];

/** The time at which the grace period of a pod ends, in milliseconds; `Infinity` if it is not being deleted. */
export const deletionTimeOf = ({ metadata }: V1Pod): number =>
  metadata?.deletionTimestamp === undefined ? Number.POSITIVE_INFINITY : new Date(metadata.deletionTimestamp).getTime();

const createdAt = ({ metadata }: V1Pod): number => new Date(metadata?.creationTimestamp ?? 0).getTime();

/** Reasons for which a container does not start before its image or its settings change. */
const REFUSED: ReadonlySet<string> = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
]);

/** Exit statuses of permanent failures, as in the Docker driver. */
const PERMANENT_STATUSES: ReadonlySet<number> = new Set([2, 126, 127]);

export type PodEnd = { reason: string; is_permanent: boolean; exit_code?: number };

/**
 * Returns why a run of the container ended; undefined while it runs or starts.
 *
 * @param restarts the number of restarts before the run
 */
export function endOf(pod: V1Pod, restarts: number): PodEnd | undefined {
  const status = statusOf(pod);
  const waiting = status?.state?.waiting;
  if (waiting?.reason !== undefined && REFUSED.has(waiting.reason)) {
    const reason = `the container could not be started (${waiting.reason}${waiting.message ? `: ${waiting.message}` : ""})`;
    return { reason, is_permanent: true };
  }
  const terminated =
    status?.state?.terminated ??
    (status && status.restartCount > restarts ? status.lastState?.terminated : undefined) ??
    (waiting?.reason === "CrashLoopBackOff" ? status?.lastState?.terminated : undefined);
  if (terminated) {
    const { exitCode, reason } = terminated;
    const is_permanent = PERMANENT_STATUSES.has(exitCode);
    return {
      reason:
        reason === "OOMKilled" ? "the container ran out of memory" : `the container exited with status ${exitCode}`,
      is_permanent,
      exit_code: exitCode,
    };
  }
  if (pod.status?.phase !== "Failed") return undefined;
  const { reason = "Failed", message } = pod.status;
  return { reason: `the pod was stopped (${reason}${message ? `: ${message}` : ""})`, is_permanent: false };
}

export const isRunning = (pod: V1Pod): boolean => statusOf(pod)?.state?.running !== undefined;

const TAIL_LINES = 20;

/** Returns the last lines of the run of the container that ended last. */
export async function podStderrTail(cluster: Cluster, pod: V1Pod): Promise<string> {
  const previous = isRunning(pod);
  const query = { container: CONTAINER, tailLines: TAIL_LINES, previous };
  const log = await cluster.log(runOf(pod).pod, query).catch(() => undefined);
  return log ? stderrTail((await text(log)).split("\n")) : "";
}

export const logOf = (cluster: Cluster, { pod, restarts }: ContainerRun, instance_id: string): ContainerLog => ({
  async follow(since) {
    const sinceTime = new Date(since * 1000).toISOString().replace(".000Z", "Z");
    const query = { container: CONTAINER, follow: true, timestamps: true, ...(since > 0 && { sinceTime }) };
    return (await cluster.log(pod, query)) ?? Readable.from([]);
  },
  async isRunning() {
    const pods = await cluster.list("pods", selectorOf("instance", instance_id));
    const found = pods.find(({ metadata }) => metadata?.name === pod);
    return found !== undefined && runOf(found).restarts === restarts && endOf(found, restarts) === undefined;
  },
  frames: () => new PodLogFrames(),
});

const SPACE = 0x20;

/** Splits the log of a pod into frames: a timestamp, a space and a line of output. The log merges stdout and stderr. */
class PodLogFrames {
  readonly #lines = new LineSplitter();

  add(chunk: Uint8Array): LogFrame[] {
    return this.#lines.add(chunk).flatMap((line) => {
      const bytes = Buffer.from(`${line}\n`);
      const space = bytes.indexOf(SPACE);
      return space > 0
        ? { stream: "stdout" as const, at: bytes.toString("latin1", 0, space), bytes: bytes.subarray(space + 1) }
        : [];
    });
  }
}
