import type { Tx } from "../../platform/database/database.ts";
import type { DeploymentRow, InstanceRow } from "./schema.ts";

/** A deployment with one of the instances that take its requests; nulls where it has none. */
export type RouteRow = Pick<DeploymentRow, "deployment_id" | "slug" | "tenant_id"> & {
  [Column in "instance_id" | "address" | "api_key"]: InstanceRow[Column] | null;
};

/**
 * Where requests go, as the rows say: to the ready instances of the active revision, without those of a roll-out of it that
 * is still under way. A deployment that is being deleted is none any more.
 */
const routes = (tx: Tx) =>
  tx.k
    .selectFrom("deployments as d")
    .leftJoin("revisions as r", "r.revision_id", "d.active_revision_id")
    .leftJoin("instances as i", (join) =>
      join
        .onRef("i.revision_id", "=", "r.revision_id")
        .on("i.state", "=", "ready")
        .on("i.address", "is not", null)
        .on((e) => e.or([e("r.status", "<>", "DEPLOYING"), e("i.rollout", "<>", e.ref("r.deploying_at"))])),
    )
    .select(["d.deployment_id", "d.slug", "d.tenant_id", "i.instance_id", "i.address", "i.api_key"])
    .where("d.status", "<>", "AWAITING_DELETE");

/** None where there is no such deployment. */
export const routesOfSlug = (tx: Tx, slug: string): Promise<RouteRow[]> =>
  tx.all(routes(tx).where("d.slug", "=", slug));

/** Of those that there are. */
export const routesOf = (tx: Tx, deployment_ids: readonly string[]): Promise<RouteRow[]> =>
  tx.all(routes(tx).where("d.deployment_id", "in", deployment_ids));
