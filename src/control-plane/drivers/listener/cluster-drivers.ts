import { type DeployDriver, DeployError, type InstanceRef, type InstanceSpec } from "../driver.ts";
import type { Call } from "./protocol.ts";

/** The drivers of a listener, one for each namespace of its cluster. */
export class ClusterDrivers {
  readonly #drivers: ReadonlyMap<string, DeployDriver>;
  /** Addresses of known instances, and the drivers that have them. */
  readonly #known = new Map<string, { driver: DeployDriver; address: string }>();

  /** @param drivers by namespace; deployments without a namespace use the first one */
  constructor(drivers: ReadonlyMap<string, DeployDriver>) {
    this.#drivers = drivers;
  }

  /** @throws DeployError when the listener does not deploy to the namespace; errors of the driver */
  async ensure(spec: InstanceSpec): Promise<InstanceRef> {
    const driver = spec.namespace === undefined ? this.#first : this.#drivers.get(spec.namespace);
    if (!driver)
      throw new DeployError(
        `The listener does not deploy to the namespace "${spec.namespace}": start it with this namespace in --namespaces.`,
      );
    const ref = await driver.ensure(spec);
    this.#known.set(ref.instance_id, { driver, address: ref.address });
    return ref;
  }

  async call(call: Call): Promise<unknown> {
    switch (call.method) {
      case "pin":
        return this.#first.pin?.(call.image, { log: () => undefined, signal: new AbortController().signal });
      case "probe": {
        const driver = (await this.#find(call.ref.instance_id))?.driver ?? this.#first;
        return driver.probe(call.ref);
      }
      case "stop": {
        const known = await this.#find(call.ref.instance_id);
        this.#known.delete(call.ref.instance_id);
        // Other objects of an instance whose Deployment was deleted are found by their name.
        const drivers = known ? [known.driver] : [...this.#drivers.values()];
        for (const driver of drivers) await driver.stop(call.ref, { grace_ms: call.grace_ms });
        return;
      }
      case "list":
        return this.#list();
      case "remove":
        for (const driver of this.#drivers.values()) await driver.remove(call);
        return;
    }
  }

  /** Undefined for what is no instance of this listener. */
  async addressOf(instance_id: string): Promise<string | undefined> {
    return (await this.#find(instance_id))?.address || undefined;
  }

  async close(): Promise<void> {
    for (const driver of this.#drivers.values()) await driver.close?.();
  }

  get #first(): DeployDriver {
    return this.#drivers.values().next().value as DeployDriver;
  }

  async #find(instance_id: string): Promise<{ driver: DeployDriver; address: string } | undefined> {
    if (!this.#known.get(instance_id)?.address) await this.#list();
    return this.#known.get(instance_id);
  }

  async #list(): Promise<InstanceRef[]> {
    const found: InstanceRef[] = [];
    for (const driver of this.#drivers.values()) {
      for (const ref of await driver.list()) {
        this.#known.set(ref.instance_id, { driver, address: ref.address });
        found.push(ref);
      }
    }
    return found;
  }
}
