import { type DeployDriver, DeployError } from "../drivers/driver.ts";
import { moveIfAt } from "../storage/revision-steps.ts";
import type { RevisionRow } from "../storage/schema.ts";
import { buildOrder } from "./instance-order.ts";
import { asking, type Work } from "./reconciler-context.ts";

/**
 * Builds a revision as soon as a builder is free. One whose process died is built again from the start; drivers keep what they
 * have built by its content.
 */
export async function build({ revision }: { revision: RevisionRow }, work: Work, signal: AbortSignal): Promise<void> {
  await work.builders.use(signal, async () => {
    if (!(await begins(revision, work))) return;
    try {
      const { artifact, commit_sha } = await buildArtifact(revision, work, signal);
      if (signal.aborted) return;
      await work.told();
      const found = commit_sha === undefined ? {} : { source_revision_config: withCommit(revision, commit_sha) };
      await ends(revision, work, { to: "AWAITING_DEPLOY", artifact, message: null, ...found });
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

type Built = Awaited<ReturnType<NonNullable<DeployDriver["build"]>>>;

async function buildArtifact(revision: RevisionRow, work: Work, signal: AbortSignal): Promise<Built> {
  const driver = work.drivers.driverFor(revision.source);
  if (!driver?.build) throw new DeployError(`Nothing builds deployments of the source "${revision.source}" here.`);
  const order = await asking(() => buildOrder(revision, work));
  const log = (line: Parameters<Work["tell"]>[2]) => work.tell("build", revision, line);
  return asking(async () => driver.build?.(order, { log, signal }) as Promise<Built>);
}

/** A branch moves on; the revision says which commit it is. */
const withCommit = ({ source_revision_config }: RevisionRow, repo_commit_sha: string): string =>
  JSON.stringify({ ...JSON.parse(source_revision_config), repo_commit_sha });

type End =
  | { to: "AWAITING_DEPLOY"; artifact: string; source_revision_config?: string; message: null }
  | { to: "BUILD_FAILED"; message: string };

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
