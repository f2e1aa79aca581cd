import type { InstanceRow, RevisionRow, RevisionStatus } from "../storage/schema.ts";

/** What is to be done next about a deployment. */
export type Step =
  /** A move of revision-states.ts. Ends other than `DEPLOYED` take the instances of the roll-out along. */
  | { do: "move"; revision: RevisionRow; to: RevisionStatus; message: string | null; artifact?: string }
  /** The rows of a roll-out's instances. */
  | { do: "want"; revision: RevisionRow; replicas: number }
  /** The traffic, and then the rows that say so. */
  | { do: "switch"; revision: RevisionRow; fresh: readonly InstanceRow[] }
  | { do: "drain"; instances: readonly InstanceRow[]; drain_ms: number }
  | { do: "forget restarts"; instance: InstanceRow }
  | { do: "route"; upstreams: readonly InstanceRow[] }
  | { do: "close route" }
  /** Begins something that takes its time, and of which one at a time goes on. */
  | { do: "begin"; job: Job }
  | { do: "abort"; key: string }
  /** All rows of a deployment of which nothing else is left. */
  | { do: "erase" }
  /** Nothing runs, and nothing is to be done: the lease is given back. */
  | { do: "leave" }
  | { do: "rest"; ms: number };

/** What takes its time: a driver at work, or somebody who watches an instance. */
export type Job =
  | { kind: "build"; revision: RevisionRow }
  /** Starts an instance, or finds the one that is there. */
  | { kind: "ensure"; instance: InstanceRow; revision: RevisionRow }
  /** Until it is ready, or gone. */
  | { kind: "gate"; instance: InstanceRow; revision: RevisionRow }
  /** Until it is gone. */
  | { kind: "watch"; instance: InstanceRow; revision: RevisionRow }
  /** Stops an instance that does not get ready, so that it can be started again. */
  | { kind: "restart"; instance: InstanceRow; revision: RevisionRow }
  | { kind: "stop"; instance: InstanceRow; grace_ms: number }
  /** Has the roll-out of an instance that serves execute the runs of the deployment. */
  | { kind: "activate"; instance: InstanceRow }
  /** Builds that no revision can need any more. */
  | { kind: "prune"; after: string }
  /** What drivers and uploads have left of a deployment. */
  | { kind: "remove" };

export const keyOf = (job: Job): string => {
  if (job.kind === "build") return `build ${job.revision.revision_id}`;
  if (job.kind === "remove" || job.kind === "prune" || job.kind === "activate") return job.kind;
  return `${job.kind} ${job.instance.instance_id}`;
};

/** What a process knows of a deployment that no row says. All of it can be found out anew. */
export interface Facts {
  /** The jobs that go on, by key. */
  jobs: ReadonlyMap<string, { readonly aborted: boolean }>;
  /** What went wrong with jobs, by key, since they last went well. */
  troubles: ReadonlyMap<string, Trouble>;
  /** Instances that this process has started or found, so that it hears of them. */
  known: ReadonlySet<string>;
  /** Since when it keeps the deployment. While nobody did, nobody asked whether anything was ready: that time does not count. */
  kept_since: number;
  /** The roll-out (`rolloutOf`) to which the traffic has been switched, until the rows say so. */
  switched: string | undefined;
  /** The fingerprint of the upstreams that the router was last told. */
  routed: string | undefined;
  /** The roll-out (the number of its instances) that was last told to execute runs. */
  activated: number | undefined;
  /** The roll-out (`rolloutOf`) after which old builds were last removed. */
  pruned: string | undefined;
  /** For a deployment that is to go: the router knows, and the drivers have removed what was theirs. */
  route_closed: boolean;
  removed: boolean;
  inFlight(instance_id: string): number;
  plan(revision: RevisionRow): Plan;
}

export interface Trouble {
  /** How often a driver has failed, not because of what the user brought. */
  failures: number;
  /** The back-off goes on. */
  waits: boolean;
}

/** How a revision becomes something that runs. */
export type Plan = { kind: "build" } | { kind: "image"; image: string } | { kind: "impossible"; because: string };

/** What the steps are decided by; all in milliseconds but for the counts. */
export interface StepSettings {
  deadline_ms: number;
  progress_ms: number;
  drain_ms: number;
  /** How often the router is asked whether a draining instance has anything left to end. */
  drain_look_ms: number;
  /** An instance that has been ready for this long has its restarts forgotten. */
  steady_ms: number;
  /** Whoever holds a deployment looks at least this often, in case a hint was lost. */
  look_ms: number;
}
