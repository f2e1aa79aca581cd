import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { type Kind, RULES, type TestCluster, type Wire } from "../support/kubernetes/cluster.ts";
import { kubernetesMissing, startCluster } from "../support/kubernetes/start.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";
import { temporaryFolder, writeFiles } from "./deployed-project.ts";

const KEY = "key-of-the-administrator-0123456789";

/** A graph that says which one it is. */
const graphThat = (says: string) => ({
  "langgraph.json": JSON.stringify({ graphs: { agent: "./agent.mjs:graph" } }),
  "agent.mjs": `
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ said: Annotation });
export const graph = new StateGraph(State)
  .addNode("say", () => ({ said: "${says}" }))
  .addEdge("__start__", "say").addEdge("say", "__end__").compile();
`,
});

describe.skipIf(kubernetesMissing())("deployments on Kubernetes", () => {
  let cluster: TestCluster;
  let at: TestDatabase;
  let port: number;
  let service: ServerProcess;
  beforeAll(async () => {
    cluster = await startCluster();
    for (const says of ["a", "b"])
      cluster.images.set(`localhost/agents/says:${says}`, writeFiles(temporaryFolder(), graphThat(says)));
    at = await createDatabase("postgres");
    port = await freePort();
    service = await start();
  });
  afterAll(async () => {
    service.child.kill("SIGTERM");
    await service.ended;
    await cluster.stop();
    await at.drop();
  });

  const start = () =>
    startProcess({
      config: "test/graphs/compat/langgraph.json",
      data: at.data_dir,
      databaseUrl: at.url as string,
      port,
      env: {
        API_KEYS: KEY,
        THREADMILL_IMAGE_DRIVER: "kubernetes",
        THREADMILL_KUBECONFIG: cluster.kubeconfig,
        THREADMILL_DOCKER_REGISTRIES: "localhost",
        THREADMILL_DEPLOY_DRAIN: "2s",
      },
    });
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
  const deployImage = (name: string, image_uri: string) =>
    call("POST", "/v2/deployments", {
      name,
      source: "external_docker",
      source_config: {},
      source_revision_config: { image_uri },
      secrets: [],
    });
  const revisionOf = ({ id }: Wire, revision_id: string) =>
    call("GET", `/v2/deployments/${id}/revisions/${revision_id}`);
  const serves = (made: Wire, revision_id: string) =>
    until(
      "the revision serves",
      async () => {
        const { status, status_message } = await revisionOf(made, revision_id);
        if (/FAILED/.test(status)) throw new Error(`${status}: ${status_message}`);
        return status === "DEPLOYED";
      },
      60_000,
    );
  const fails = (made: Wire) =>
    until("the revision has failed", async () => {
      const { status, status_message } = await revisionOf(made, made.latest_revision_id);
      return status === "DEPLOY_FAILED" && status_message;
    });
  const remove = async ({ id }: Wire) => {
    await call("DELETE", `/v2/deployments/${id}`);
    const isDeleted = async () =>
      (await fetch(`${service.url}/v2/deployments/${id}`, { headers: { "x-api-key": KEY } })).status === 404;
    await until("it is deleted", isDeleted, 60_000);
  };
  const pathOf = ({ source_config }: Wire) => `/deployments/${source_config.custom_url.split("/deployments/")[1]}`;
  const answerOf = async (made: Wire): Promise<string> =>
    (await call("POST", `${pathOf(made)}/runs/wait`, { assistant_id: "agent", input: {} })).said;
  const names = async (kind: Kind) =>
    (await cluster.all(kind)).flatMap(({ metadata }) => (metadata.name.startsWith("threadmill-") ? metadata.name : []));
  const nothingIsLeft = () =>
    until("the objects are deleted", async () => {
      const left = await Promise.all((["deployments", "services", "secrets", "pods"] as const).map(names));
      return left.flat().length === 0;
    });

  it("roll out without a failed request, outlive the service, and leave nothing behind", async () => {
    const made = await deployImage("says", "localhost/agents/says:a");
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
    await until("the old one is deleted", async () => (await names("pods")).length === 1);

    const running = await names("pods");
    service.child.kill("SIGKILL");
    await once(service.child, "exit");
    service = await start();
    expect(await answerOf(made)).toBe("b");
    expect(await names("pods")).toEqual(running);

    await remove(made);
    await nothingIsLeft();
  }, 180_000);

  it("fail with the missing rule of RBAC, and with the reason of the kubelet", async () => {
    await cluster.grant(RULES.filter(({ resources }) => resources[0] !== "secrets"));
    const denied = await deployImage("denied", "localhost/agents/says:a");
    const message = (await fails(denied)) as string;
    expect(message.replace(/"threadmill-[\w-]+"/, '"NAME"')).toBe(
      'The Kubernetes API denied a request: secrets "NAME" is forbidden: User "system:serviceaccount:agents:threadmill" cannot patch resource "secrets" in API group "" in the namespace "agents". Add this rule to the Kubernetes Role of this service: {apiGroups: [""], resources: ["secrets"], verbs: ["patch"]}.',
    );
    await cluster.grant(RULES);
    const unknown = await deployImage("unknown", "localhost/agents/nobody-has:1");
    expect(await fails(unknown)).toBe(
      "The instance failed: the container could not be started (ErrImagePull: localhost/agents/nobody-has:1: not found).",
    );
    await remove(denied);
    await remove(unknown);
    await nothingIsLeft();
  }, 180_000);
});
