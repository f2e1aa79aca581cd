import type { Deployment } from "../../src/control-plane/contract/records.ts";
import { createDatabase } from "./databases.ts";
import { freePort, type ServerOptions, startProcess } from "./process.ts";
import { until } from "./until.ts";

const OPERATOR = "a-key-of-the-operator-0123456789abcdef";

/** A service in a process of its own, that builds and runs what is deployed to it. */
export interface DeployingServer {
  url: string;
  /** The folder of its database. */
  data: string;
  /** What requests show. */
  key: string;
  call(method: string, path: string, body?: unknown): Promise<Response>;
  deployments(): Promise<Deployment[]>;
  /** Deletes what is deployed, so that no process outlives the test, and stops the service. */
  stop(): Promise<void>;
}

/** A service that needs a key, if `env` does not say otherwise. */
export async function startDeployingServer({
  config = "test/graphs/shared/langgraph.json",
  command,
  env = { API_KEYS: OPERATOR },
}: Partial<Pick<ServerOptions, "config" | "command" | "env">> = {}): Promise<DeployingServer> {
  const database = await createDatabase("sqlite");
  const data = database.data_dir;
  const { url, child, ended } = await startProcess({ config, command, data, port: await freePort(), env });
  const server: DeployingServer = {
    url,
    data,
    key: OPERATOR,
    call: (method, path, body) =>
      fetch(`${url}${path}`, {
        method,
        headers: { "x-api-key": server.key },
        body: body === undefined ? undefined : JSON.stringify(body),
      }),
    async deployments() {
      const answer = await server.call("GET", "/v2/deployments");
      return ((await answer.json()) as { resources: Deployment[] }).resources;
    },
    async stop() {
      for (const { id } of await server.deployments()) await server.call("DELETE", `/v2/deployments/${id}`);
      // The rows go last, when processes and folders are gone.
      await until("all are gone", async () => (await server.deployments()).length === 0);
      child.kill("SIGTERM");
      await ended;
      await database.drop();
    },
  };
  return server;
}
