import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { createWebSocketStream, WebSocket } from "ws";
import { type Flags, readListenerConfig } from "../config/config.ts";
import type { Listener, ListenersList } from "../control-plane/contract/listeners.ts";
import { backOffMs } from "../control-plane/drivers/driver.ts";
import { createKubernetesDriver } from "../control-plane/drivers/kubernetes/driver.ts";
import { ClusterDrivers } from "../control-plane/drivers/listener/cluster-drivers.ts";
import { serveControlPlane } from "../control-plane/drivers/listener/server.ts";
import { openPostgres } from "../platform/database/postgres/postgres.ts";
import { ConfigError } from "../platform/errors.ts";
import { createLog } from "../platform/lib/log.ts";
import { CommandError, type Target } from "./command.ts";
import { requestJson } from "./service-client.ts";

export interface ListenFlags extends Flags {
  computeId: string;
  namespaces?: string[];
}

const HANDSHAKE_MS = 10_000;
/** A connection that lasted longer resets the back-off. */
const HEALTHY_MS = 60_000;

/**
 * Deploys to a cluster for the control plane of a service, which cannot reach the cluster: this program opens the connection, and again when
 * it ends, until a signal stops it. Instances keep running.
 *
 * @throws CommandError when the service does not accept the key, or the listener was deleted; ConfigError
 */
export async function listen(flags: ListenFlags, target: Target): Promise<void> {
  const config = readListenerConfig(flags, process.env);
  const { database_url } = config;
  if (database_url === undefined)
    throw new ConfigError(
      "--database-url is required: the Postgres in which each deployment of this cluster gets a schema.",
    );
  const log = createLog(config.log_level);
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
  const { id } = await register(flags, target);
  const database = openPostgres({ url: database_url, log });
  const driverFor = (kubernetes_namespace: string | undefined) =>
    createKubernetesDriver({ ...config, kubernetes_namespace, service_id: id, database, log });
  const namespaces = flags.namespaces ?? [config.kubernetes_namespace];
  const drivers = new ClusterDrivers(new Map(namespaces.map((name) => [name ?? "", driverFor(name)])));
  try {
    let failures = 0;
    while (!stopping.signal.aborted) {
      const began = performance.now();
      const ended = await connect(id, target, drivers, stopping.signal, () =>
        log.info({ listener_id: id, url: target.url }, "listener connected"),
      );
      if (stopping.signal.aborted) break;
      failures = performance.now() - began > HEALTHY_MS ? 1 : failures + 1;
      log.warn({ listener_id: id, reason: ended, retry_ms: backOffMs(failures) }, "listener not connected");
      await delay(backOffMs(failures), undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  } finally {
    await drivers.close();
    await database.close();
  }
}

/** Creates the listener, or updates the one with this compute ID. */
async function register({ computeId: compute_id, namespaces }: ListenFlags, target: Target): Promise<Listener> {
  const compute_config = { k8s_namespaces: namespaces ?? null };
  const PAGE = 100;
  for (let offset = 0; ; offset += PAGE) {
    const path = `/v2/listeners?limit=${PAGE}&offset=${offset}`;
    const { resources } = await requestJson<ListenersList>(target, "GET", path);
    const found = resources.find((listener) => listener.compute_id === compute_id);
    if (found) return requestJson<Listener>(target, "PATCH", `/v2/listeners/${found.id}`, { compute_config });
    if (resources.length < PAGE) break;
  }
  return requestJson<Listener>(target, "POST", "/v2/listeners", { compute_type: "k8s", compute_id, compute_config });
}

/**
 * Serves one connection. Returns why it ended.
 *
 * @throws CommandError when the service will not accept another one either
 */
async function connect(
  listener_id: string,
  { url, api_key }: Target,
  drivers: ClusterDrivers,
  signal: AbortSignal,
  onOpen: () => void,
): Promise<string> {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v2/listeners/${listener_id}/connect`, {
    handshakeTimeout: HANDSHAKE_MS,
    ...(api_key !== undefined && { headers: { "x-api-key": api_key } }),
  });
  // Before the socket is open, because the first bytes can arrive together with the answer to the handshake.
  const connection = createWebSocketStream(socket);
  connection.on("error", () => undefined);
  const onStop = () => socket.terminate();
  signal.addEventListener("abort", onStop);
  try {
    let refused: IncomingMessage | undefined;
    socket.once("unexpected-response", (_, response) => {
      refused = response;
      socket.terminate();
    });
    let failure = "the connection has ended";
    socket.on("error", ({ message }) => {
      failure = message;
    });
    await Promise.race([once(socket, "open"), once(socket, "close")]).catch(() => undefined);
    const status = refused?.statusCode;
    if (status === 401 || status === 403 || status === 404)
      throw new CommandError(
        status === 404
          ? `The service has no listener ${listener_id}: it was deleted. Start this command again to create it.`
          : `The service refused the connection with status ${status}: check --api-key, whose key requires the scope "deployments".`,
      );
    if (status !== undefined) return `the service answered ${status}`;
    if (socket.readyState !== WebSocket.OPEN) return failure;
    onOpen();
    await serveControlPlane(connection, drivers);
    return failure;
  } finally {
    signal.removeEventListener("abort", onStop);
    socket.terminate();
  }
}
