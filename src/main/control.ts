import { fileURLToPath } from "node:url";
import type { Config } from "../config.ts";
import { type Control, type ControlContext, createControl } from "../control/control.ts";
import { bySource } from "../control/drivers/by-source.ts";
import { createProcessDriver } from "../control/drivers/process/driver.ts";
import { askOverHttp } from "../control/health.ts";
import { reconcilerSettings } from "../control/parts.ts";
import { Reconciler } from "../control/reconciler.ts";
import { DeploymentRouter } from "../control/router/deployment-router.ts";
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

/** A deployment's own process has no deployments: with `--only agents` nothing is reconciled. */
export async function openControl(config: Config, context: Omit<ControlContext, "settings">): Promise<ControlPlane> {
  const control = createControl({ ...context, settings: config });
  const router = new DeploymentRouter({ ...context, clock: systemClock, wait: realWait, settings: config });
  if (config.only) return { control, router, start: () => undefined, stop: async () => undefined };
  const driver = await createProcessDriver({
    ...config,
    program: fileURLToPath(new URL("../../bin/threadmill.js", import.meta.url)),
    git_protocols: config.deploy_git_protocols,
    git_hosts: config.deploy_git_hosts,
    database: context.database,
    log: context.log,
  });
  const reconciler = new Reconciler({
    ...context,
    uploads: control.uploads,
    drivers: bySource(driver),
    router,
    askOk: askOverHttp(OK_WITHIN_MS),
    clock: systemClock,
    wait: realWait,
    settings: reconcilerSettings(config),
  });
  const services = [...control.maintenance, reconciler];
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
      await Promise.all([driver.close?.(), router.stop()]);
    },
  };
}
