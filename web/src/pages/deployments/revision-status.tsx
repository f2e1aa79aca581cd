import type { Deployment, Revision } from "../../../../src/control-plane/contract/records.ts";
import { Status, type StatusKind } from "../../ui/status.tsx";

type RevisionStatus = Revision["status"];

const KINDS: Record<RevisionStatus, StatusKind> = {
  CREATING: "pending",
  QUEUED: "pending",
  AWAITING_BUILD: "pending",
  BUILDING: "running",
  AWAITING_DEPLOY: "pending",
  DEPLOYING: "running",
  DEPLOYED: "success",
  CREATE_FAILED: "error",
  BUILD_FAILED: "error",
  DEPLOY_FAILED: "error",
  SKIPPED: "off",
  INTERRUPTED: "interrupted",
  UNKNOWN: "off",
};

/**
 * What can be deployed again, as it was built. Whether one that failed or was interrupted has ever been deployed is not told: where
 * it has not, the server refuses it in words.
 */
const BUILT: readonly RevisionStatus[] = ["DEPLOYED", "DEPLOY_FAILED", "INTERRUPTED"];

export const isUnderWay = ({ status }: Revision): boolean => ["pending", "running"].includes(KINDS[status]);
export const mayBeRedeployed = ({ status }: Revision): boolean => BUILT.includes(status);

/** `BUILD_FAILED` as people write it. */
export const words = (status: string): string => status.toLowerCase().replaceAll("_", " ");

export const RevisionState = ({ revision }: { revision: Revision }) => (
  <Status status={words(revision.status)} kind={KINDS[revision.status]} />
);

/** Whether it serves: a revision is active, whatever becomes of the latest one. */
export function ServingState({ status, active_revision_id }: Pick<Deployment, "status" | "active_revision_id">) {
  if (status === "AWAITING_DELETE") return <Status status="being deleted" kind="interrupted" />;
  if (active_revision_id) return <Status status="serves" kind="success" />;
  return status === "READY" ? (
    <Status status="not yet" kind="pending" />
  ) : (
    <Status status={words(status)} kind="pending" />
  );
}
