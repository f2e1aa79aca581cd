import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "langsmith";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { DeployedService, OPERATOR_KEY } from "./deployed-service.ts";

/** Answers with its process and port, after the file `gate` exists if the input names one. */
const AGENT = `
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ gate: Annotation, pid: Annotation, port: Annotation });
export const graph = new StateGraph(State)
  .addNode("node", async ({ gate }) => {
    while (gate && !existsSync(gate)) await pause(50);
    return { pid: process.pid, port: process.env.PORT };
  })
  .addEdge("__start__", "node").addEdge("node", "__end__").compile();
`;
const PROJECT = { "langgraph.json": JSON.stringify({ graphs: { agent: "./agent.mjs:graph" } }), "agent.mjs": AGENT };

describe.each(databases)("the traces of a deployment's runs on %s", (name) => {
  let service: DeployedService;
  let address: string;
  let other_key: string;
  let revision: string;
  beforeAll(async () => {
    // On Postgres replaced instances go by this.
    service = await DeployedService.start(name, { THREADMILL_DEPLOY_DRAIN: "1s", THREADMILL_TRACING: "on" });
    revision = await service.deploy(PROJECT);
    await service.becomes(revision, "DEPLOYED");
    const { source_config } = (await service.deployment()) as Wire;
    address = new URL(source_config.custom_url).pathname;
    const workspace = (await service.call("POST", "/admin/workspaces", { name: "other" })) as Wire;
    const key = { name: "other", tenant_id: workspace.tenant_id, scopes: ["experiments"] };
    other_key = ((await service.call("POST", "/admin/keys", key)) as Wire).key;
  }, 300_000);
  afterAll(() => service.close(), 300_000);

  const langsmith = (apiKey: string) => new Client({ apiUrl: `${service.server.url}/api/v1`, apiKey });
  const mine = () => langsmith(OPERATOR_KEY);
  const start = async (input: object): Promise<Wire> => {
    const body = { assistant_id: "agent", input, if_not_exists: "create" };
    return (await service.call("POST", `${address}/threads/${randomUUID()}/runs`, body)) as Wire;
  };
  const gate = () => join(service.database.data_dir, randomUUID());
  const join_ = ({ thread_id, run_id }: Wire) =>
    service.call("GET", `${address}/threads/${thread_id}/runs/${run_id}/join`) as Promise<Wire>;
  const find = (client: Client, run_id: string) =>
    client.readRun(run_id, { loadChildRuns: true }).catch(() => undefined);
  const traced = (run_id: string, isFound: (run: Wire) => boolean = ({ status }) => status === "success") =>
    service.holds("the trace is stored", async () => {
      const found = await find(mine(), run_id);
      return found !== undefined && isFound(found);
    });

  it("are stored in the project of the deployment in its workspace, and in no other", async () => {
    const run = await start({});
    await join_(run);
    await traced(run.run_id);
    const root = (await find(mine(), run.run_id)) as Wire;
    expect(root.child_runs?.map((child: Wire) => child.name)).toEqual(["node"]);
    expect(root.extra.metadata).toMatchObject({
      run_id: run.run_id,
      thread_id: run.thread_id,
      deployment_id: service.deployment_id,
      revision_id: revision,
    });
    expect((await mine().readProject({ projectId: root.session_id })).name).toBe("mine");
    expect(await find(langsmith(other_key), run.run_id)).toBeUndefined();
    const { host } = (await service.call("GET", `${address}/info`)) as Wire;
    expect(host).toMatchObject({ kind: "self-hosted", project_id: service.deployment_id });
  });

  it("are deleted with a rollback, and with their thread", async () => {
    const [ended, running] = [await start({}), await start({ gate: gate() })];
    await traced(ended.run_id);
    await traced(running.run_id, ({ status }) => status === "pending");
    const { thread_id, run_id } = running;
    await service.call("POST", `${address}/threads/${thread_id}/runs/${run_id}/cancel?action=rollback&wait=1`);
    await service.call("DELETE", `${address}/threads/${ended.thread_id}`);
    for (const run of [running, ended])
      await service.holds("the trace is deleted", async () => (await find(mine(), run.run_id)) === undefined);
  });

  it("are complete if the instance stops while the run ends", async () => {
    const file = gate();
    const [before, run] = [await join_(await start({})), await start({ gate: file })];
    await traced(run.run_id, ({ status }) => status === "pending");
    await service.redeploy(revision);
    await service.holds("the instance accepts no connections", () =>
      fetch(`http://127.0.0.1:${before.port}/ok`).then(
        () => false,
        () => true,
      ),
    );
    writeFileSync(file, "");
    await traced(run.run_id);
    expect((await join_(run)).pid).toBe(before.pid);
  });

  it("survive a kill of the instance and of the service, and continue with the run", async () => {
    const [first, second] = [gate(), gate()];
    const [ended, killed] = [await start({}), await start({ gate: first })];
    await traced(ended.run_id);
    await traced(killed.run_id, ({ status }) => status === "pending");
    process.kill((await join_(ended)).pid, "SIGKILL");
    await service.holds("the instance runs again", async () => {
      const response = await service.send("POST", `${address}/threads/${killed.thread_id}/state`, {});
      return response.ok || response.status === 409;
    });
    const run = await start({ gate: second });
    await traced(run.run_id, ({ status }) => status === "pending");
    await service.stop("SIGKILL");
    for (const file of [first, second]) writeFileSync(file, "");
    await service.start();
    for (const { run_id } of [ended, killed, run]) await traced(run_id);
    const root = (await find(mine(), killed.run_id)) as Wire;
    expect(root.extra.metadata.run_attempt).toBe(2);
  });

  it("are fetched only by the service", async () => {
    const response = await service.send("POST", `${address}/internal/traces/wait`);
    expect([response.status, await response.json()]).toEqual([404, { detail: expect.any(String) }]);
  });
});
