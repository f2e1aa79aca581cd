import { useQuery } from "@tanstack/react-query";
import type { Deployment } from "../../../../src/control-plane/contract/records.ts";
import { DASH } from "../../ui/format.ts";
import { Status } from "../../ui/status.tsx";
import { revisionQuery } from "./queries.ts";
import { RevisionStatusLabel, statusLabel } from "./revision-status.tsx";

/** Status of a deployment. It is live if a revision is active, even if the latest revision failed; else its status is that of the latest. */
export function DeploymentStatus({ id, status, active_revision_id, latest_revision_id }: Deployment) {
  if (status === "AWAITING_DELETE") return <Status status="deleting" kind="interrupted" />;
  if (active_revision_id) return <Status status="Live" kind="success" />;
  if (status !== "READY") return <Status status={statusLabel(status)} kind="pending" />;
  return latest_revision_id ? (
    <LatestRevision id={id} revision_id={latest_revision_id} />
  ) : (
    <Status status="Not deployed" kind="pending" />
  );
}

export function LatestRevision({ id, revision_id }: { id: string; revision_id: string }) {
  const { data } = useQuery(revisionQuery(id, revision_id));
  return data ? <RevisionStatusLabel revision={data} /> : <span className="text-text-3">{DASH}</span>;
}
