import type { InstanceRow, RevisionRow, RevisionStatus } from "../storage/schema.ts";

export type ReconcileStep =
  /** A row of REVISION_TRANSITIONS. A terminal status also drains the instances of the rollout. */
  | { do: "transition"; revision: RevisionRow; to: RevisionStatus; message: string | null; artifact?: string }
  | { do: "insert instances"; revision: RevisionRow; replicas: number }
  /** Switches the traffic, then commits the rows that record it. */
  | { do: "switch"; revision: RevisionRow; upstreams: readonly InstanceRow[] }
  | { do: "drain"; instances: readonly InstanceRow[]; drain_ms: number }
  | { do: "reset restarts"; instance: InstanceRow }
  | { do: "route"; upstreams: readonly InstanceRow[] }
  | { do: "close route" }
  | { do: "start job"; job: Job }
  | { do: "abort job"; key: string }
  /** Deletes all rows of a deployment whose instances and files were removed. */
  | { do: "delete rows" }
  /** Releases the lease: nothing runs and nothing is pending. */
  | { do: "release" }
  | { do: "wait"; ms: number };

export type StepOf<D extends ReconcileStep["do"]> = Extract<ReconcileStep, { do: D }>;

/**
 * `ensure` starts an instance, or attaches to the running one. `readiness` runs until it is ready or has ended, `watch` until it has
 * ended. `restart` stops an instance that does not become ready again, so that it is started again.
 */
export interface InstanceJob {
  kind: "ensure" | "readiness" | "watch" | "restart";
  instance: InstanceRow;
  revision: RevisionRow;
}

/** Work that takes longer than a transaction: driver calls, and the observation of instances. */
export type Job =
  | InstanceJob
  | { kind: "build"; revision: RevisionRow }
  | { kind: "stop"; instance: InstanceRow; grace_ms: number }
  /** From then on only instances of this instance's rollout execute the runs of the deployment. */
  | { kind: "activate"; instance: InstanceRow }
  /** Removes builds that no revision needs. */
  | { kind: "prune"; after: string }
  /** Removes the resources of a deleted deployment: those of the drivers, uploads and log lines. */
  | { kind: "remove" };

export type JobOf<K extends Job["kind"]> = Job & { kind: K };

export const keyOf = (job: Job): string => {
  if (job.kind === "build") return `build ${job.revision.revision_id}`;
  if (job.kind === "remove" || job.kind === "prune" || job.kind === "activate") return job.kind;
  return `${job.kind} ${job.instance.instance_id}`;
};

/** The state of a controller that is in no row. Steps and jobs record it; after a crash the next controller derives it again. */
export interface Facts {
  jobs: ReadonlyMap<string, { readonly aborted: boolean }>;
  failures: ReadonlyMap<string, JobFailure>;
  /** Instances that this process has started or attached to. */
  attached: Set<string>;
  /** The first read of the rows. Earlier time does not count for deadlines, as no readiness check ran. */
  held_since: number;
  /** The rollout (`rolloutId`) to which the traffic was switched, until the rows record it. */
  uncommitted_switch: string | undefined;
  /** The fingerprint of the upstreams that the router has. */
  routed_upstreams: string | undefined;
  /** The rollout (the number of its instances) that was last activated. */
  activated_rollout: number | undefined;
  /** The rollout (`rolloutId`) after which old builds were last removed. */
  pruned_after: string | undefined;
  /** For a deleted deployment: the router has closed its route, and the drivers have removed its resources. */
  route_closed: boolean;
  resources_removed: boolean;
  inFlight(instance_id: string): number;
  plan(revision: RevisionRow): Plan;
}

export interface JobFailure {
  /** Consecutive failures of a driver that the user's source or image did not cause. */
  count: number;
  backing_off: boolean;
}

/** How a revision becomes something that runs. */
export type Plan = { kind: "build" } | { kind: "image"; image: string } | { kind: "invalid"; reason: string };

/** The settings that steps depend on, in milliseconds. */
export interface StepSettings {
  /** See {@link DeadlineSettings}. */
  deadline_ms: number;
  progress_ms: number;
  drain_ms: number;
  /** Interval at which the router is asked for the requests in flight of a draining instance. */
  drain_check_ms: number;
  /** The restarts of an instance are reset after it has been ready for this long. */
  stable_ms: number;
  /** A controller reads its rows at least this often, in case a hint was lost. */
  resync_ms: number;
}
