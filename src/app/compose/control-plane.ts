import { fileURLToPath } from "node:url";
import type { Config } from "../../config/config.ts";
import { type Control, type ControlContext, createControl } from "../../control-plane/control.ts";
import { createDockerDriver } from "../../control-plane/drivers/docker/driver.ts";
import { driversBySource } from "../../control-plane/drivers/drivers.ts";
import { createKubernetesDriver } from "../../control-plane/drivers/kubernetes/driver.ts";
import { ListenerConnections } from "../../control-plane/drivers/listener/connections.ts";
import { ListenerDrivers } from "../../control-plane/drivers/listener/driver.ts";
import { createProcessDriver } from "../../control-plane/drivers/process/driver.ts";
import { unpackLimits } from "../../control-plane/drivers/process/source/unpack.ts";
import { GRACE_MS } from "../../control-plane/reconcile/next-step.ts";
import { Reconciler } from "../../control-plane/reconcile/reconciler.ts";
import { reconcilerSettings } from "../../control-plane/reconcile/reconciler-context.ts";
import { type CollectedTraces, traceCollector } from "../../control-plane/reconcile/trace-collector.ts";
import { activateOverHttp, checkReadyOverHttp } from "../../control-plane/rollout/instance-client.ts";
import { DeploymentRouter } from "../../control-plane/router/deployment-router.ts";
import { instancesOfDriver } from "../../control-plane/storage/instances.ts";
import { hasListener } from "../../control-plane/storage/listeners.ts";
import { realWait, systemClock } from "../../platform/lib/clock.ts";

/** Time limit for the response of an instance at /ok. */
const HEALTH_TIMEOUT_MS = 2_000;
/** Consecutive successful health checks after which an instance is ready. */
const READY_PROBES = 3;
/** Time limit for an instance to take over the runs of its deployment. */
const ACTIVATION_TIMEOUT_MS = 10_000;

export interface ControlPlane {
  control: Control;
  router: DeploymentRouter;
  start(): void;
  /**
   * With `dev`, also stops the deployments' processes. With `serve`, these processes keep running and the next start
   * adopts them.
   */
  stop(): Promise<void>;
}

/** With `--only agents` the caller starts none of the services: an instance of a deployment has no deployments of its own. */
export async function openControlPlane(
  config: Config,
  context: Omit<ControlContext, "settings" | "listener_connections">,
  traces: CollectedTraces,
): Promise<ControlPlane> {
  const deploys = config.only === undefined && config.reconciles;
  const listener_connections = deploys ? new ListenerConnections() : undefined;
  const control = createControl({ ...context, settings: config, listener_connections });
  const router = new DeploymentRouter({ ...context, clock: systemClock, wait: realWait, settings: config });
  const drivers = listener_connections && (await openDrivers(config, context, listener_connections));
  const reconciler =
    drivers &&
    new Reconciler({
      ...context,
      drivers,
      router,
      uploads: control.uploads,
      checkReady: checkReadyOverHttp(HEALTH_TIMEOUT_MS),
      activate: activateOverHttp(ACTIVATION_TIMEOUT_MS),
      collectTraces: traceCollector({
        ...context,
        traces: config.tracing_rate === 0 ? onlyDeleted(traces) : traces,
        wait: realWait,
      }),
      default_env: {
        THREADMILL_TRACING: String(config.tracing_rate),
        THREADMILL_TRACE_STATELESS: config.trace_stateless ? "1" : "0",
      },
      clock: systemClock,
      wait: realWait,
      settings: reconcilerSettings({ ...config, deploy_probes: READY_PROBES }),
    });
  const services = [...control.maintenance, ...(reconciler ? [reconciler] : [])];
  return {
    control,
    router,
    start() {
      // Before the reconciler, which updates the routes.
      router.start();
      for (const service of services) service.start();
    },
    async stop() {
      const stopped = Promise.all(services.map((service) => service.stop()));
      const closed = stopped.then(() => drivers?.close());
      // In parallel, so that `dev` signals its instances before the grace period of requests ends.
      await Promise.all([closed, router.settle(config.shutdown_grace_ms)]);
      await router.stop();
    },
  };
}

/** With tracing off, stores no traces and executes only deletions: instances may have started with other settings. */
const onlyDeleted = (traces: CollectedTraces): CollectedTraces => ({
  store: async () => undefined,
  end: async () => undefined,
  delete: (tenant_id, run_ids) => traces.delete(tenant_id, run_ids),
});

async function openDrivers(
  config: Config,
  { database, log }: Pick<ControlContext, "database" | "log">,
  connections: ListenerConnections,
) {
  const exists = (listener_id: string) => hasListener(database.read, listener_id);
  const instancesOf = (driver: string) => instancesOfDriver(database.read, driver);
  const listeners = new ListenerDrivers({ connections, exists, instancesOf });
  const process = await createProcessDriver({
    ...config,
    program: fileURLToPath(new URL("../../../bin/threadmill.js", import.meta.url)),
    git_protocols: config.deploy_git_protocols,
    git_hosts: config.deploy_git_hosts,
    unpack_limits: unpackLimits(config.source_limit_bytes),
    stop_grace_ms: config.command === "dev" ? GRACE_MS : undefined,
    database,
    log,
  });
  const docker = createDockerDriver({ ...config, database, log });
  if (config.image_driver === "docker") return driversBySource({ process, images: docker, listeners });
  const kubernetes = createKubernetesDriver({ ...config, database, log });
  return driversBySource({ process, images: kubernetes, others: [docker], listeners });
}
