import type { ChildProcess } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";

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

// biome-ignore lint/suspicious/noExplicitAny: what the API answers, in every shape
type Wire = any;

describe.skipIf(engineMissing())("deployments of images", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
    await engine.imageOf("localhost/agents/says:a", graphThat("a"));
    await engine.imageOf("localhost/agents/says:b", graphThat("b"));
  }, 180_000);
  afterAll(() => engine.stop(), 60_000);

  describe.each(databases)("on %s", (name) => {
    let at: TestDatabase;
    let port: number;
    let service: ServerProcess;
    beforeAll(async () => {
      at = await createDatabase(name);
      port = await freePort();
      service = await start();
    });
    afterAll(async () => {
      await end(service.child);
      await at.drop();
    });

    const start = () =>
      startProcess({
        config: "test/graphs/compat/langgraph.json",
        data: at.data_dir,
        ...(at.url !== undefined && { databaseUrl: at.url }),
        port,
        env: {
          API_KEYS: KEY,
          THREADMILL_DOCKER_HOST: `unix://${engine.socket}`,
          THREADMILL_DOCKER_NETWORK: "host",
          THREADMILL_DOCKER_REGISTRIES: "localhost, 127.0.0.1:1",
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
    const deployImage = (image_uri: string) =>
      call("POST", "/v2/deployments", {
        name: `says-${name}-${image_uri.replace(/\W/g, "-")}`,
        source: "external_docker",
        source_config: {},
        source_revision_config: { image_uri },
        secrets: [],
      });
    const serves = async ({ id }: Wire, revision_id: string) => {
      await until(
        "the revision serves",
        async () => {
          const { status, status_message } = await call("GET", `/v2/deployments/${id}/revisions/${revision_id}`);
          if (/FAILED/.test(status)) throw new Error(`${status}: ${status_message}`);
          return (
            (await call("GET", `/v2/deployments/${id}`)).active_revision_id === revision_id && status === "DEPLOYED"
          );
        },
        120_000,
      );
    };
    const pathOf = ({ source_config }: Wire) => `/deployments/${source_config.custom_url.split("/deployments/")[1]}`;
    const engineMessage = async (deployment: Wire) =>
      (await call("POST", `${pathOf(deployment)}/runs/wait`, { assistant_id: "agent", input: {} })).said;
    const containersOf = async ({ id }: Wire) =>
      engine.docker.listContainers({ all: true, filters: { label: [`threadmill.deployment=${id}`] } });

    it("roll out and back without a failed request, outlive the service, and leave nothing behind", async () => {
      const made = await deployImage("localhost/agents/says:a");
      const first = made.latest_revision_id as string;
      await serves(made, first);
      const stream = await fetch(`${service.url}${pathOf(made)}/runs/stream`, {
        method: "POST",
        headers: { "x-api-key": KEY, "content-type": "application/json" },
        body: JSON.stringify({ assistant_id: "agent", input: {}, stream_mode: "updates" }),
      });
      expect(await stream.text()).toContain('{"say":{"said":"a"}}');

      const load = asking(() => engineMessage(made));
      const { latest_revision_id: second } = await call("PATCH", `/v2/deployments/${made.id}`, {
        source_revision_config: { image_uri: "localhost/agents/says:b" },
      });
      await serves(made, second);
      await until("the new one has answered", async () => load.answers.at(-1) === "b");
      await load.stop();
      expect(load.failures).toEqual([]);
      expect([...new Set(load.answers)]).toEqual(["a", "b"]);

      // The tag leads elsewhere by now; the revision stays what it was.
      const { Id: image } = await engine.docker.getImage("localhost/agents/says:a").inspect();
      await engine.docker.getImage("localhost/agents/says:b").tag({ repo: "localhost/agents/says", tag: "a" });
      await call("POST", `/v2/deployments/${made.id}/revisions/${first}/redeploy`);
      await serves(made, first);
      await engine.docker.getImage(image).tag({ repo: "localhost/agents/says", tag: "a" });
      expect(await engineMessage(made)).toBe("a");
      await until("the old one is gone", async () => (await containersOf(made)).length === 1);

      const [running] = await containersOf(made);
      service.child.kill("SIGKILL");
      await service.ended;
      service = await start();
      expect(await engineMessage(made)).toBe("a");
      expect((await containersOf(made)).map(({ Id, State }) => [Id, State])).toEqual([[running?.Id, "running"]]);

      await call("DELETE", `/v2/deployments/${made.id}`);
      await until("it is gone", async () => (await fetchStatus(`/v2/deployments/${made.id}`)) === 404);
      expect(await containersOf(made)).toEqual([]);
    }, 300_000);

    it("fail with a sentence when there is no such image", async () => {
      const made = await deployImage("127.0.0.1:1/agents/nobody-has:1");
      const path = `/v2/deployments/${made.id}/revisions/${made.latest_revision_id}`;
      await until("it has ended", async () => /FAILED/.test((await call("GET", path)).status));
      expect(await call("GET", path)).toMatchObject({
        status: "DEPLOY_FAILED",
        status_message: expect.stringMatching(
          /^The image 127\.0\.0\.1:1\/agents\/nobody-has:1 could not be looked up in the registry 127\.0\.0\.1:1: .*connection refused.*\.$/,
        ),
      });
    });

    const fetchStatus = async (path: string) =>
      (await fetch(`${service.url}${path}`, { headers: { "x-api-key": KEY } })).status;
  });
});

/** Asks one request after the other, by two at a time, until it is stopped. */
function asking(ask: () => Promise<string>) {
  const load = { answers: [] as string[], failures: [] as unknown[], stop };
  let stopped = false;
  const loop = async () => {
    while (!stopped) {
      await ask().then(
        (answer) => load.answers.push(answer),
        (error) => load.failures.push(error),
      );
    }
  };
  const running = [loop(), loop()];
  async function stop() {
    stopped = true;
    await Promise.all(running);
  }
  return load;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}
