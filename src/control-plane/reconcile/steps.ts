import type { InstanceRow, RevisionRow, RevisionStatus } from "../storage/schema.ts";

export type ReconcileStep =
  /** Applies a transition of REVISION_TRANSITIONS. A terminal status also drains the instances of the rollout. */
  | { do: "transition"; revision: RevisionRow; to: RevisionStatus; message: string | null; artifact?: string }
  | { do: "insert instances"; revision: RevisionRow; replicas: number }
  /** Switches the traffic, then commits the rows that record the switch. */
  | { do: "switch"; revision: RevisionRow; upstreams: readonly InstanceRow[] }
  | { do: "drain"; instances: readonly InstanceRow[]; drain_ms: number }
  | { do: "reset restarts"; instance: InstanceRow }
  | { do: "route"; upstreams: readonly InstanceRow[] }
  | { do: "close route" }
  | { do: "start job"; job: Job }
  | { do: "abort job"; key: string }
  /** Deletes all rows of a deployment whose instances and files were removed. */
  | { do: "delete rows" }
  /** Releases the lease, because nothing runs and nothing is pending. */
  | { do: "release" }
  | { do: "wait"; ms: number };

export type StepOf<D extends ReconcileStep["do"]> = Extract<ReconcileStep, { do: D }>;

/**
 * `ensure` starts an instance, or attaches to a running instance. `readiness` runs until the instance is ready or has ended, `watch`
 * until it has ended. `restart` stops an instance that does not become ready again and schedules a new start.
 */
export interface InstanceJob {
  kind: "ensure" | "readiness" | "watch" | "restart";
  instance: InstanceRow;
  revision: RevisionRow;
}

/** Work that is too slow for a transaction and is done outside it: driver calls, and the monitoring of instances. */
export type Job =
  | InstanceJob
  | { kind: "build"; revision: RevisionRow }
  | { kind: "stop"; instance: InstanceRow; grace_ms: number }
  /** Activates the instance's rollout: from then on, only instances of this rollout execute the runs of the deployment. */
  | { kind: "activate"; instance: InstanceRow }
  /** Removes builds that no revision needs. */
  | { kind: "prune"; after: string }
  /** Removes a deleted deployment's driver resources, uploads and log lines. */
  | { kind: "remove" };

export type JobOf<K extends Job["kind"]> = Job & { kind: K };

export const keyOf = (job: Job): string => {
  if (job.kind === "build") return `build ${job.revision.revision_id}`;
  if (job.kind === "remove" || job.kind === "prune" || job.kind === "activate") return job.kind;
  return `${job.kind} ${job.instance.instance_id}`;
};

/** In-memory state of a controller. After a crash, the next controller starts with empty state and repeats steps where needed. */
export interface Facts {
  jobs: ReadonlyMap<string, { readonly aborted: boolean }>;
  failures: ReadonlyMap<string, JobFailure>;
  /** Instances that this process has started or attached to. */
  attached: Set<string>;
  /** Time of this controller's first read of the rows. Readiness deadlines start no earlier, because this controller ran no readiness checks before. */
  held_since: number;
  /** Rollout (`rolloutId`) to which the traffic was switched, until the rows record the switch. */
  uncommitted_switch: string | undefined;
  /** Fingerprint of the router's current upstreams. */
  routed_upstreams: string | undefined;
  /** The rollout (`rollout` of its instances) that was last activated. */
  activated_rollout: number | undefined;
  /** The rollout (`rolloutId`) after which old builds were last removed. */
  pruned_after: string | undefined;
  /** Progress of a deletion: whether the route is closed, and whether the driver resources are removed. */
  route_closed: boolean;
  resources_removed: boolean;
  inFlight(instance_id: string): number;
  plan(revision: RevisionRow): Plan;
}

export interface JobFailure {
  /** Number of consecutive driver failures because of infrastructure errors. */
  count: number;
  backing_off: boolean;
}

/** How to obtain the artifact of a revision: by a build or from an image; or why this is not possible. */
export type Plan = { kind: "build" } | { kind: "image"; image: string } | { kind: "invalid"; reason: string };

/** Settings that affect the decisions about steps, in milliseconds. */
export interface StepSettings {
  /** See {@link DeadlineSettings}. */
  deadline_ms: number;
  progress_ms: number;
  drain_ms: number;
  /** Interval at which the controller checks a draining instance for requests in flight. */
  drain_check_ms: number;
  /** The restart count of an instance is reset after it has been ready for this long. */
  stable_ms: number;
  /** A controller reads its rows at least this often, in case a hint was lost. */
  resync_ms: number;
}
