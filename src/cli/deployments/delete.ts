import { askControl, type Target } from "../experiments/api.ts";
import { findDeployment } from "./find.ts";

/** Deletes a deployment; what runs of it is stopped soon after. */
export async function deleteDeployment(name: string, { json }: { json?: boolean }, target: Target): Promise<void> {
  const deployment = await findDeployment(target, name);
  await askControl(target, "DELETE", `/v2/deployments/${deployment.id}`);
  console.log(
    json ? JSON.stringify({ id: deployment.id, name: deployment.name }) : `"${deployment.name}" is being deleted.`,
  );
}
