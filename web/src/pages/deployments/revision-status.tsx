import type { Revision } from "../../../../src/control-plane/contract/records.ts";
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

export const hasFailed = ({ status }: Revision): boolean => KINDS[status] === "error";

export const isInProgress = ({ status }: Revision): boolean => ["pending", "running"].includes(KINDS[status]);

/** Formats a status such as `BUILD_FAILED` as `build failed`. */
export const statusLabel = (status: string): string => status.toLowerCase().replaceAll("_", " ");

export const RevisionStatusLabel = ({ revision }: { revision: Revision }) => (
  <Status status={statusLabel(revision.status)} kind={KINDS[revision.status]} />
);
