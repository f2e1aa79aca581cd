import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { NAMESPACE, type TestCluster, type Wire } from "../support/kubernetes/cluster.ts";
import { kubernetesMissing, startCluster } from "../support/kubernetes/start.ts";
import { freePort, type ServerProcess, startCli, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";
import { temporaryFolder, writeFiles } from "./deployed-project.ts";

const KEY = "key-of-the-administrator-0123456789";

const graphThat = (says: string) => ({
  "langgraph.json": JSON.stringify({ graphs: { agent: "./agent.mjs:graph" } }),
  "agent.mjs": `
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ said: Annotation });
export const graph = new StateGraph(State)
  .addNode("say", () => {
    console.log("asked for ${says}");
    return { said: "${says}" };
  })
  .addEdge("__start__", "say").addEdge("say", "__end__").compile();
`,
});

describe.skipIf(kubernetesMissing())("deployments of a listener", () => {
  let cluster: TestCluster;
  let at: TestDatabase;
  let ofListener: TestDatabase;
  let port: number;
  let service: ServerProcess;
  let listener: ChildProcess;
  beforeAll(async () => {
    cluster = await startCluster();
    for (const says of ["a", "b"])
      cluster.images.set(`localhost/agents/says:${says}`, writeFiles(temporaryFolder(), graphThat(says)));
    at = await createDatabase("sqlite");
    ofListener = await createDatabase("postgres");
    port = await freePort();
    service = await start();
    listener = await listen();
  });
  afterAll(async () => {
    for (const child of [listener, service.child]) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    }
    await cluster.stop();
    await ofListener.drop();
    await at.drop();
  });

  const start = () =>
    startProcess({
      config: "test/graphs/compat/langgraph.json",
      data: at.data_dir,
      port,
      env: { API_KEYS: KEY, THREADMILL_DEPLOY_DRAIN: "2s" },
    });
  const listen = async (compute_id = "cluster-1"): Promise<ChildProcess> => {
    const child = startCli(
      [
        ...["listen", "--url", service.url, "--compute-id", compute_id, "--namespaces", NAMESPACE],
        ...["--data", ofListener.data_dir, "--database-url", ofListener.url as string],
      ],
      {
        env: {
          THREADMILL_API_KEY: KEY,
          THREADMILL_KUBECONFIG: cluster.kubeconfig,
          THREADMILL_DOCKER_REGISTRIES: "localhost",
        },
      },
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk) => {
        output += chunk;
      });
    await until("the listener is connected", async () => {
      if (child.exitCode !== null) throw new Error(output);
      return output.includes("listener connected");
    });
    return child;
  };
  const call = async (method: string, path: string, body?: object): Promise<Wire> => {
    const answer = await fetch(`${service.url}${path}`, {
      method,
      headers: { "x-api-key": KEY, ...(body && { "content-type": "application/json" }) },
      body: body ? JSON.stringify(body) : null,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  const idOf = async (compute_id: string): Promise<string> => {
    const { resources } = await call("GET", "/v2/listeners");
    return resources.find((one: Wire) => one.compute_id === compute_id).id;
  };
  const deploy = (name: string, listener_id: string, more: object = {}) =>
    call("POST", "/v2/deployments", {
      name,
      source: "external_docker",
      source_config: { listener_id, listener_config: { k8s_namespace: NAMESPACE } },
      source_revision_config: { image_uri: "localhost/agents/says:a" },
      secrets: [],
      ...more,
    });
  const stateOf = ({ id }: Wire, revision_id: string) => call("GET", `/v2/deployments/${id}/revisions/${revision_id}`);
  const serves = (made: Wire, revision_id: string) =>
    until(
      "the revision serves",
      async () => {
        const { status, status_message } = await stateOf(made, revision_id);
        if (/FAILED/.test(status)) throw new Error(`${status}: ${status_message}`);
        return status === "DEPLOYED";
      },
      60_000,
    );
  const remove = async ({ id }: Wire) => {
    await call("DELETE", `/v2/deployments/${id}`);
    const isDeleted = async () =>
      (await fetch(`${service.url}/v2/deployments/${id}`, { headers: { "x-api-key": KEY } })).status === 404;
    await until("it is deleted", isDeleted, 60_000);
  };
  const pathOf = ({ source_config }: Wire) => `/deployments/${source_config.custom_url.split("/deployments/")[1]}`;
  const answerOf = async (made: Wire): Promise<string> =>
    (await call("POST", `${pathOf(made)}/runs/wait`, { assistant_id: "agent", input: {} })).said;
  const pods = async () => (await cluster.all("pods")).map(({ metadata }) => metadata.name);
  const kill = async (child: ChildProcess) => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };

  const answersAgain = (made: Wire) =>
    until(
      "it answers again",
      () =>
        answerOf(made).then(
          (answer) => answer === "b",
          () => false,
        ),
      60_000,
    );

  it("roll out without a failed request, outlive both ends of the connection, and leave nothing behind", async () => {
    const made = await deploy("says", await idOf("cluster-1"));
    await serves(made, made.latest_revision_id);
    expect(await answerOf(made)).toBe("a");

    const answers: string[] = [];
    let isOver = false;
    const load = (async () => {
      while (!isOver) answers.push(await answerOf(made));
    })();
    const { latest_revision_id: second } = await call("PATCH", `/v2/deployments/${made.id}`, {
      source_revision_config: { image_uri: "localhost/agents/says:b" },
    });
    await serves(made, second);
    await until("the new one has answered", async () => answers.at(-1) === "b");
    isOver = true;
    await load;
    expect([...new Set(answers)]).toEqual(["a", "b"]);
    await until("the old one is deleted", async () => (await pods()).length === 1);
    const running = await pods();

    await kill(listener);
    await expect(answerOf(made)).rejects.toThrow(/was answered 50[23]/);
    listener = await listen();
    await answersAgain(made);

    await kill(service.child);
    service = await start();
    await answersAgain(made);
    expect(await pods()).toEqual(running);
    await until("the log continues", async () => {
      const { logs } = await call("POST", `/v1/projects/${made.id}/deploy_logs`, { limit: 1000 });
      const asked = logs.filter(({ message }: Wire) => message === "asked for b");
      return asked.length > answers.filter((answer) => answer === "b").length;
    });

    await remove(made);
    await until("the objects are deleted", async () => {
      const kinds = ["deployments", "services", "secrets", "pods"] as const;
      const left = (await Promise.all(kinds.map((kind) => cluster.all(kind)))).flat();
      return left.every(({ metadata }) => !metadata.name.startsWith("threadmill-"));
    });
  }, 240_000);

  it("wait for a listener that is not connected, and end with one that is deleted", async () => {
    const { id } = await call("POST", "/v2/listeners", {
      compute_type: "k8s",
      compute_id: "cluster-2",
      compute_config: { k8s_namespaces: [NAMESPACE] },
    });
    const made = await deploy("waits", id);
    await until("the reason is shown", async () => {
      const { status, status_message } = await stateOf(made, made.latest_revision_id);
      return status === "DEPLOYING" && status_message?.startsWith(`The listener ${id} is not connected: check that`);
    });
    const other = await listen("cluster-2");
    await serves(made, made.latest_revision_id);
    const ended = once(other, "exit");
    await call("DELETE", `/v2/listeners/${id}`);
    expect(await ended).toEqual([1, null]);
    await remove(made);
  }, 120_000);

  it("are refused if their source is not an image", async () => {
    const made = await deploy("builds", await idOf("cluster-1"), {
      source: "github",
      source_config: { listener_id: await idOf("cluster-1"), repo_url: "https://example.com/acme/agent" },
      source_revision_config: { repo_ref: "main" },
    });
    await until("the revision has failed", async () => {
      const { status_message } = await stateOf(made, made.latest_revision_id);
      return status_message === 'Listeners run images only, but the source is "github": use "external_docker".';
    });
    await remove(made);
  }, 60_000);

  it("are not reached by the connections of others", async () => {
    const id = await idOf("cluster-1");
    const workspace = await call("POST", "/admin/workspaces", { name: "other" });
    const statusFor = async (headers: Record<string, string>, listener_id = id): Promise<number> => {
      const socket = new WebSocket(`${service.url.replace("http", "ws")}/v2/listeners/${listener_id}/connect`, {
        headers,
      });
      const [answer] = await Promise.race([
        once(socket, "unexpected-response").then(([, response]) => [response.statusCode]),
        once(socket, "open").then(() => [101]),
      ]);
      socket.on("error", () => undefined).terminate();
      return answer;
    };
    expect(await statusFor({})).toBe(401);
    expect(await statusFor({ "x-api-key": KEY, "x-tenant-id": workspace.tenant_id })).toBe(404);
    expect(await statusFor({ "x-api-key": KEY }, crypto.randomUUID())).toBe(404);
    const answer = await fetch(`${service.url}/v2/listeners/${id}/connect`, { headers: { "x-api-key": KEY } });
    expect(answer.status).toBe(422);
  });
});
