import { once } from "node:events";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Deployment, Revision } from "../../src/control-plane/contract/records.ts";
import { median } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { start as startProgram, temporaryFolder } from "../processes.ts";
import { type Server, serverOf } from "../target.ts";

const ROOT = join(import.meta.dirname, "../..");
const TIMES = 3;

/** The echo example, which has no dependencies: from its creation to a live deployment, and its next revision. */
export const deploy: Measurement = {
  name: "deploy",
  without: ["floor", "peer"],
  figures: [
    {
      key: "create_ms",
      label: "deployment of the echo example: from its creation until DEPLOYED, ms",
      goal: { against: "itself", max: 6_000 },
    },
    { key: "command_ms", label: "... `threadmill deploy`, total duration, ms" },
    { key: "next_ms", label: "its next revision: from its creation until DEPLOYED, ms" },
  ],
  async measure(start) {
    await using target = await start();
    const server = serverOf(target);
    const folder = createProject();
    const create: number[] = [];
    const command: number[] = [];
    const next: number[] = [];
    for (let n = 0; n < TIMES; n++) {
      const started_at = performance.now();
      const first = await deployOnce(server, folder, `echo-${n}`);
      command.push(performance.now() - started_at);
      create.push(first.deployed_at - first.created_at);
      const second = await deployOnce(server, folder, `echo-${n}`);
      next.push(second.deployed_at - second.revised_at);
      await server.send("DELETE", `/v2/deployments/${first.id}`, { status: 204 });
    }
    return { create_ms: median(create), command_ms: median(command), next_ms: median(next) };
  },
};

function createProject(): string {
  const folder = join(temporaryFolder(), "echo");
  mkdirSync(folder);
  cpSync(join(ROOT, "examples/echo/graph.ts"), join(folder, "graph.ts"));
  writeFileSync(join(folder, "langgraph.json"), JSON.stringify({ graphs: { echo: "./graph.ts:graph" } }));
  return folder;
}

/** Deploys with the command. The times are those of the service, in ms since the epoch. */
async function deployOnce({ port, send }: Server, folder: string, name: string) {
  const url = `http://127.0.0.1:${port}`;
  const args = [join(ROOT, "bin/threadmill.js"), "deploy", folder, "--name", name, "--url", url, "--json"];
  const { child, stderrTail } = startProgram(args, { output: true });
  const printed = child.stdout?.setEncoding("utf8").toArray();
  const [status] = await once(child, "close");
  if (status !== 0) throw new Error(`threadmill deploy exited with ${status}: ${stderrTail()}`);
  const { deployment_id, revision_id } = JSON.parse(((await printed) ?? []).join("")) as Record<string, string>;
  const deployment = JSON.parse(await send("GET", `/v2/deployments/${deployment_id}`)) as Deployment;
  const revision = JSON.parse(
    await send("GET", `/v2/deployments/${deployment_id}/revisions/${revision_id}`),
  ) as Revision;
  return {
    id: deployment.id,
    created_at: Date.parse(deployment.created_at),
    revised_at: Date.parse(revision.created_at),
    deployed_at: Date.parse(revision.updated_at),
  };
}
