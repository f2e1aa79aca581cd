import type { Tx } from "../../platform/database/database.ts";
import type { DeploymentContext } from "../reconcile/reconciler-context.ts";
import { IN_PROGRESS, type StatusTransition, transitionIfStatus } from "../storage/revisions.ts";
import type { RevisionRow, RevisionStatus } from "../storage/schema.ts";

interface RevisionTransition {
  /** Previous status; null for a new row. */
  from: RevisionStatus | null;
  to: RevisionStatus;
  reason: string;
}

/** Terminal statuses from which a revision can be deployed again, if it was deployed before and still has its artifact. */
const WITH_ARTIFACT = ["DEPLOYED", "DEPLOY_FAILED", "INTERRUPTED"] as const satisfies readonly RevisionStatus[];

/**
 * All status transitions of a revision. In addition, the deletion of a deployment deletes revisions in any status.
 * docs/control-plane.md contains a diagram. test/control/revision-states.test.ts checks that exactly these transitions occur.
 */
export const REVISION_TRANSITIONS: readonly RevisionTransition[] = [
  { from: null, to: "CREATING", reason: "accepted" },
  { from: null, to: "QUEUED", reason: "accepted while another revision is in progress" },
  { from: "CREATING", to: "AWAITING_BUILD", reason: "the source needs a build" },
  { from: "CREATING", to: "AWAITING_DEPLOY", reason: "the source is an image" },
  { from: "CREATING", to: "CREATE_FAILED", reason: "the source cannot be built or run" },
  { from: "QUEUED", to: "AWAITING_BUILD", reason: "the previous revision has finished, and the source needs a build" },
  {
    from: "QUEUED",
    to: "AWAITING_DEPLOY",
    reason: "the previous revision has finished, and the source of this revision is an image",
  },
  { from: "QUEUED", to: "CREATE_FAILED", reason: "the source can no longer be built or run" },
  { from: "QUEUED", to: "SKIPPED", reason: "a newer revision is queued" },
  { from: "AWAITING_BUILD", to: "BUILDING", reason: "a build slot is free" },
  { from: "BUILDING", to: "AWAITING_DEPLOY", reason: "built" },
  { from: "BUILDING", to: "BUILD_FAILED", reason: "the build failed" },
  { from: "AWAITING_DEPLOY", to: "DEPLOYING", reason: "the rollout starts" },
  { from: "DEPLOYING", to: "DEPLOYED", reason: "the instances are ready and receive the traffic" },
  { from: "DEPLOYING", to: "DEPLOY_FAILED", reason: "the instances were not ready in time, or exited" },
  ...IN_PROGRESS.map((from) => ({ from, to: "INTERRUPTED", reason: "interrupted" }) as const),
  ...WITH_ARTIFACT.map((from) => ({ from, to: "AWAITING_DEPLOY", reason: "deployed again" }) as const),
];

export const isInProgress = (status: RevisionStatus): boolean => !isTerminal(status);

export const isTerminal = (status: RevisionStatus): boolean => !IN_PROGRESS.some((each) => each === status);

/**
 * @param also writes that belong to the same transaction
 * @returns false if the status is no longer `from`; nothing is written
 */
export async function transition(
  { revision_id, deployment_id, updated_at, deploying_at }: RevisionRow,
  change: Omit<StatusTransition, "revision_id" | "is_terminal">,
  context: DeploymentContext,
  also?: (tx: Tx) => Promise<unknown>,
): Promise<boolean> {
  const { from, to, status_message } = change;
  const is_changed = await context.commit(async (tx) => {
    if (!(await transitionIfStatus(tx, { ...change, revision_id, is_terminal: isTerminal(to) }))) return false;
    await also?.(tx);
    return true;
  });
  if (!is_changed) return false;
  const now = context.clock.now();
  const revision = { deployment_id, revision_id };
  context.log.info({ ...revision, from, to, duration_ms: now - updated_at }, "revision status changed");
  const rollout = { ...revision, duration_ms: now - (deploying_at ?? now) };
  if (to === "DEPLOYED") context.log.info(rollout, "rollout finished");
  if (to === "DEPLOY_FAILED") context.log.warn({ ...rollout, reason: status_message }, "rollout failed");
  return true;
}
