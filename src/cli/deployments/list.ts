import type { Deployment } from "../../control-plane/contract/records.ts";
import { printable } from "../../platform/lib/printable.ts";
import type { Target } from "../experiments/api.ts";
import { eachDeployment, getRevision } from "./find.ts";

/** Prints a line for each deployment, or all of them as JSON. */
export async function listDeployments({ json }: { json?: boolean }, target: Target): Promise<void> {
  const all: Deployment[] = [];
  for await (const deployment of eachDeployment(target)) all.push(deployment);
  if (json) {
    console.log(JSON.stringify(all, null, 2));
    return;
  }
  if (all.length === 0) {
    console.log(`Nothing is deployed at ${target.url}.`);
    return;
  }
  const rows = [["NAME", "STATE", "UPDATED", "URL"]];
  for (const deployment of all) {
    const { name, updated_at, source_config } = deployment;
    const state = await stateOf(deployment, target);
    rows.push([
      printable(name),
      state,
      `${updated_at.slice(0, 16).replace("T", " ")} UTC`,
      source_config.custom_url ?? "",
    ]);
  }
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => (row[column] as string).length)));
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
}

/** In a few words: whether it serves, and what becomes of its latest revision. */
async function stateOf(deployment: Deployment, target: Target): Promise<string> {
  const { id, status, latest_revision_id: latest, active_revision_id: active } = deployment;
  if (status === "AWAITING_DELETE") return "being deleted";
  if (latest === null) return "nothing deployed yet";
  if (latest === active) return "serves";
  const { status: next } = await getRevision(target, id, latest);
  return active === null ? next : next === "DEPLOYED" ? "serves an earlier revision" : `serves; latest ${next}`;
}
