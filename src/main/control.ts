import { fileURLToPath } from "node:url";
import type { Config } from "../config.ts";
import { type Control, type ControlContext, createControl } from "../control/control.ts";
import type { DeployDriver } from "../control/driver.ts";
import { bySource } from "../control/drivers/by-source.ts";
import { createProcessDriver } from "../control/drivers/process/driver.ts";
import { askOverHttp } from "../control/health.ts";
import { reconcilerSettings } from "../control/parts.ts";
import { Reconciler } from "../control/reconciler.ts";
import { DeploymentRouter } from "../control/router/deployment-router.ts";
import type { Uploads } from "../control/uploads.ts";
import { realWait, systemClock } from "../lib/clock.ts";

/** An instance of a deployment has so long to answer /ok. */
const OK_WITHIN_MS = 2_000;

/** The control plane, with what reconciles its deployments. */
export interface ControlPlane {
  control: Control;
  router: DeploymentRouter;
  start(): void;
  /** Deployments go on; the next start adopts them. */
  stop(): Promise<void>;
}

/** A deployment's own process has no deployments: with `--only agents` nothing of this is started. */
export async function openControl(config: Config, context: Omit<ControlContext, "settings">): Promise<ControlPlane> {
  const control = createControl({ ...context, settings: config });
  const router = new DeploymentRouter({ ...context, clock: systemClock, wait: realWait, settings: config });
  const driver = config.only === undefined && config.reconciles ? await processDriver(config, context) : undefined;
  const reconciler = driver && createReconciler(config, context, { driver, router, uploads: control.uploads });
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
      await Promise.all(services.map((service) => service.stop()));
      await Promise.all([driver?.close?.(), router.stop()]);
    },
  };
}

const processDriver = (config: Config, { database, log }: Pick<ControlContext, "database" | "log">) =>
  createProcessDriver({
    ...config,
    program: fileURLToPath(new URL("../../bin/threadmill.js", import.meta.url)),
    git_protocols: config.deploy_git_protocols,
    git_hosts: config.deploy_git_hosts,
    database,
    log,
  });

const createReconciler = (
  config: Config,
  context: Omit<ControlContext, "settings">,
  { driver, ...parts }: { driver: DeployDriver; router: DeploymentRouter; uploads: Uploads },
): Reconciler =>
  new Reconciler({
    ...context,
    ...parts,
    drivers: bySource(driver),
    askOk: askOverHttp(OK_WITHIN_MS),
    clock: systemClock,
    wait: realWait,
    settings: reconcilerSettings(config),
  });
