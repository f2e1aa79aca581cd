import type { SourceConfig } from "../contract/records.ts";
import type { DeployDriver } from "./driver.ts";
import type { ListenerDrivers } from "./listener/driver.ts";

export interface Drivers {
  /** Those that can list their instances now. */
  readonly all: readonly DeployDriver[];
  /** Returns undefined if this service cannot run deployments of this source, or its listener cannot. */
  driverFor(deployment: Deployed): DeployDriver | undefined;
  /** Returns the driver with this `kind`. */
  named(kind: string): DeployDriver | undefined;
  close(): Promise<void>;
}

/** What selects the driver of a deployment. */
export interface Deployed {
  source: string;
  /** As JSON. Its listener never changes. */
  source_config: string;
}

interface DriverChoice {
  process: DeployDriver;
  /** Runs new deployments of images. */
  images: DeployDriver;
  /** Drivers with instances from an earlier choice, which have to be stopped. */
  others?: readonly DeployDriver[];
  /** Run images of deployments with a listener. */
  listeners: ListenerDrivers;
}

/** The process driver builds and runs source; the Docker driver, the Kubernetes driver or a listener runs images. */
export function driversBySource({ process, images, others = [], listeners }: DriverChoice): Drivers {
  const local = [process, images, ...others];
  return {
    get all() {
      return [...local, ...listeners.connected()];
    },
    driverFor({ source, source_config }) {
      const { listener_id } = JSON.parse(source_config) as Pick<SourceConfig, "listener_id">;
      const isImage = source === "external_docker" || source === "internal_docker";
      if (listener_id !== null) return isImage ? listeners.of(listener_id) : undefined;
      if (source === "github" || source === "internal_source") return process;
      return isImage ? images : undefined;
    },
    named: (kind) => local.find((driver) => driver.kind === kind) ?? listeners.named(kind),
    async close() {
      await Promise.all([...local.map((driver) => driver.close?.()), listeners.close()]);
    },
  };
}
