import { moveIfAt } from "../storage/control/revision-steps.ts";
import type { RevisionRow } from "../storage/control/schema.ts";
import { DeployError } from "./driver.ts";
import { buildOrder } from "./orders.ts";
import { asking, type Work } from "./parts.ts";

/**
 * Builds a revision as soon as a builder is free. One whose process died is built again from the start; drivers keep what they
 * have built by its content.
 */
export async function build({ revision }: { revision: RevisionRow }, work: Work, signal: AbortSignal): Promise<void> {
  await work.builders.use(signal, async () => {
    if (!(await begins(revision, work))) return;
    try {
      const artifact = await buildArtifact(revision, work, signal);
      if (signal.aborted) return;
      await work.told();
      await ends(revision, work, { to: "AWAITING_DEPLOY", artifact, message: null });
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof DeployError)) throw error;
      await work.told();
      await ends(revision, work, { to: "BUILD_FAILED", message: error.message });
    }
  });
}

async function begins({ revision_id, status }: RevisionRow, work: Work): Promise<boolean> {
  if (status === "BUILDING") return true;
  const step = { revision_id, from: "AWAITING_BUILD", to: "BUILDING", status_message: null, ends: false } as const;
  return work.commit((tx) => moveIfAt(tx, step));
}

async function buildArtifact(revision: RevisionRow, work: Work, signal: AbortSignal): Promise<string> {
  const driver = work.drivers.driverFor(revision.source);
  if (!driver?.build) throw new DeployError(`Nothing builds deployments of the source "${revision.source}" here.`);
  const order = await asking(() => buildOrder(revision, work));
  const log = (line: Parameters<Work["tell"]>[2]) => work.tell("build", revision, line);
  const { artifact } = await asking(
    async () => driver.build?.(order, { log, signal }) as Promise<{ artifact: string }>,
  );
  return artifact;
}

type End = { to: "AWAITING_DEPLOY"; artifact: string; message: null } | { to: "BUILD_FAILED"; message: string };

const ends = ({ revision_id }: RevisionRow, work: Work, { message, ...end }: End) =>
  work.commit((tx) =>
    moveIfAt(tx, {
      revision_id,
      from: "BUILDING",
      status_message: message,
      ends: end.to === "BUILD_FAILED",
      ...end,
    }),
  );
