import { fileURLToPath } from "node:url";
import type { Config } from "../../config/config.ts";
import { type Control, type ControlContext, createControl } from "../../control-plane/control.ts";
import { bySource } from "../../control-plane/drivers/by-source.ts";
import { createDockerDriver } from "../../control-plane/drivers/docker/driver.ts";
import type { Drivers } from "../../control-plane/drivers/driver.ts";
import { createProcessDriver } from "../../control-plane/drivers/process/driver.ts";
import { activateOverHttp } from "../../control-plane/reconcile/activation.ts";
import { askOverHttp } from "../../control-plane/reconcile/health.ts";
import { GRACE_MS } from "../../control-plane/reconcile/instance-step.ts";
import { Reconciler } from "../../control-plane/reconcile/reconciler.ts";
import { reconcilerSettings } from "../../control-plane/reconcile/reconciler-context.ts";
import { DeploymentRouter } from "../../control-plane/router/deployment-router.ts";
import type { Uploads } from "../../control-plane/uploads.ts";
import { realWait, systemClock } from "../../platform/lib/clock.ts";

/** An instance of a deployment has so long to answer /ok. */
const OK_WITHIN_MS = 2_000;
/** ... and so long to take the runs of its deployment over. */
const ACTIVE_WITHIN_MS = 10_000;

/** The control plane, with what reconciles its deployments. */
export interface ControlPlane {
  control: Control;
  router: DeploymentRouter;
  start(): void;
  /** Processes of deployments end with `dev`; with `serve` they go on, and the next start adopts them. */
  stop(): Promise<void>;
}

/** A deployment's own process has no deployments: with `--only agents` nothing of this is started. */
export async function openControl(config: Config, context: Omit<ControlContext, "settings">): Promise<ControlPlane> {
  const control = createControl({ ...context, settings: config });
  const router = new DeploymentRouter({ ...context, clock: systemClock, wait: realWait, settings: config });
  const drivers = config.only === undefined && config.reconciles ? await openDrivers(config, context) : undefined;
  const reconciler = drivers && createReconciler(config, context, { drivers, router, uploads: control.uploads });
  const services = [...control.maintenance, ...(reconciler ? [reconciler] : [])];
  return {
    control,
    router,
    start() {
      // Before the reconciler, which tells it what it knows better.
      router.start();
      for (const service of services) service.start();
    },
    async stop() {
      // Requests have as long as runs have: then they break off, and streams are taken up again elsewhere.
      const quiet = Promise.all(services.map((service) => service.stop()));
      // At the same time, so that `dev` has asked its instances to end before anybody loses patience.
      const closed = quiet.then(() => Promise.all((drivers?.all ?? []).map((driver) => driver.close?.())));
      await Promise.all([closed, router.settle(config.shutdown_grace_ms)]);
      await router.stop();
    },
  };
}

const openDrivers = async (
  config: Config,
  { database, log }: Pick<ControlContext, "database" | "log">,
): Promise<Drivers> =>
  bySource({
    process: await createProcessDriver({
      ...config,
      program: fileURLToPath(new URL("../../../bin/threadmill.js", import.meta.url)),
      git_protocols: config.deploy_git_protocols,
      git_hosts: config.deploy_git_hosts,
      stop_grace_ms: config.command === "dev" ? GRACE_MS : undefined,
      database,
      log,
    }),
    docker: createDockerDriver({ ...config, database, log }),
  });

const createReconciler = (
  config: Config,
  context: Omit<ControlContext, "settings">,
  parts: { drivers: Drivers; router: DeploymentRouter; uploads: Uploads },
): Reconciler =>
  new Reconciler({
    ...context,
    ...parts,
    askOk: askOverHttp(OK_WITHIN_MS),
    activate: activateOverHttp(ACTIVE_WITHIN_MS),
    clock: systemClock,
    wait: realWait,
    settings: reconcilerSettings(config),
  });
