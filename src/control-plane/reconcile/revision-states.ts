import { UNDER_WAY } from "../storage/revisions.ts";
import type { RevisionStatus } from "../storage/schema.ts";

/** A move of a revision; from null: there is no such row yet. */
export interface RevisionMove {
  from: RevisionStatus | null;
  to: RevisionStatus;
  because: string;
}

/** Ends that may leave an artifact behind, with which the revision can be deployed again. */
const WITH_ARTIFACT = ["DEPLOYED", "DEPLOY_FAILED", "INTERRUPTED"] as const satisfies readonly RevisionStatus[];

/**
 * Every move that a revision can make; any of them is deleted with its deployment. docs/control-plane.md draws the table, and
 * test/control/revision-states.test.ts sees that the database makes all of these moves and no others.
 */
export const REVISION_MOVES: readonly RevisionMove[] = [
  { from: null, to: "CREATING", because: "accepted" },
  { from: null, to: "QUEUED", because: "accepted while another is under way" },
  { from: "CREATING", to: "AWAITING_BUILD", because: "there is source to build" },
  { from: "CREATING", to: "AWAITING_DEPLOY", because: "an image needs no build" },
  { from: "CREATING", to: "CREATE_FAILED", because: "there is nothing to build or run" },
  { from: "QUEUED", to: "AWAITING_BUILD", because: "the one before has ended, and there is source to build" },
  { from: "QUEUED", to: "AWAITING_DEPLOY", because: "the one before has ended, and an image needs no build" },
  { from: "QUEUED", to: "CREATE_FAILED", because: "there is nothing any more to build or run" },
  { from: "QUEUED", to: "SKIPPED", because: "a newer one is queued" },
  { from: "AWAITING_BUILD", to: "BUILDING", because: "a builder is free" },
  { from: "BUILDING", to: "AWAITING_DEPLOY", because: "built" },
  { from: "BUILDING", to: "BUILD_FAILED", because: "could not be built" },
  { from: "AWAITING_DEPLOY", to: "DEPLOYING", because: "instances are wanted" },
  { from: "DEPLOYING", to: "DEPLOYED", because: "ready, and the traffic is switched" },
  { from: "DEPLOYING", to: "DEPLOY_FAILED", because: "not ready in time, or died" },
  ...UNDER_WAY.map((from) => ({ from, to: "INTERRUPTED", because: "interrupted" }) as const),
  ...WITH_ARTIFACT.map((from) => ({ from, to: "AWAITING_DEPLOY", because: "deployed again" }) as const),
];

/** Whether a revision has come to an end, of whatever kind. */
export const isTerminal = (status: RevisionStatus): boolean => !UNDER_WAY.some((one) => one === status);
