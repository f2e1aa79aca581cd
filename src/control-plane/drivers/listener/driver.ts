import type { ClientHttp2Stream } from "node:http2";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";
import { type DeployDriver, DeployError, type InstanceRef, type InstanceSpec } from "../driver.ts";
import { type ListenerConnections, ListenerUnavailableError, Tunnels } from "./connections.ts";
import { type Call, Failure, limitLines, PATHS, RESULTS, Report } from "./protocol.ts";

const PREFIX = "listener:";

export interface ListenerDriversOptions {
  connections: ListenerConnections;
  /** Whether a listener still exists. What a deleted one has started no longer belongs to this service. */
  exists(listener_id: string): Promise<boolean>;
  /** The instances of this service that a driver has. */
  instancesOf(driver: string): Promise<ReadonlySet<string>>;
}

/** The drivers of listeners: each deploys through the connection of its listener, with the driver that the listener has. */
export class ListenerDrivers {
  readonly #options: ListenerDriversOptions;
  readonly #tunnels: Tunnels;
  readonly #drivers = new Map<string, DeployDriver>();

  constructor(options: ListenerDriversOptions) {
    this.#options = options;
    this.#tunnels = new Tunnels(options.connections);
  }

  of(listener_id: string): DeployDriver {
    const driver = this.#drivers.get(listener_id) ?? this.#create(listener_id);
    this.#drivers.set(listener_id, driver);
    return driver;
  }

  /** @param kind of a driver, as it is stored with each instance */
  named = (kind: string): DeployDriver | undefined =>
    kind.startsWith(PREFIX) ? this.of(kind.slice(PREFIX.length)) : undefined;

  /** Only these can list their instances. */
  connected = (): DeployDriver[] => this.#options.connections.connected().map((listener_id) => this.of(listener_id));

  async close(): Promise<void> {
    for (const driver of this.#drivers.values()) await driver.close?.();
    await this.#tunnels.closeAll();
    await this.#options.connections.closeAll();
  }

  #create(listener_id: string): DeployDriver {
    const { connections, instancesOf } = this.#options;
    const tunnels = this.#tunnels;
    const attachments = new Map<string, Attachment>();
    const starting = new Map<string, Promise<InstanceRef>>();
    const detach = (instance_id: string) => {
      attachments.get(instance_id)?.close();
      attachments.delete(instance_id);
    };
    const kind = `${PREFIX}${listener_id}`;
    const localOf = (ref: InstanceRef) => tunnels.localOf(listener_id, ref);
    const call = async <M extends Call["method"]>(given: Call & { method: M }) => {
      const { status, body } = await connections.send(listener_id, PATHS.call, JSON.stringify(given));
      if (status !== 200) throw errorOf(Failure.parse(JSON.parse(body)));
      return RESULTS[given.method].parse(JSON.parse(body)) as z.output<(typeof RESULTS)[M]>;
    };
    const unlessDeleted = async <T>(work: Promise<T>, otherwise: T): Promise<T> => {
      try {
        return await work;
      } catch (error) {
        if (!(error instanceof ListenerUnavailableError) || (await this.#options.exists(listener_id))) throw error;
        return otherwise;
      }
    };
    const requireListener = async (): Promise<void> => {
      if (!(await this.#options.exists(listener_id)))
        throw new DeployError(`The listener ${listener_id} was deleted: create a deployment with another one.`);
    };
    const ensure = async (spec: InstanceSpec): Promise<InstanceRef> => {
      await requireListener();
      detach(spec.instance_id);
      const attachment = new Attachment(connections, listener_id, spec);
      attachments.set(spec.instance_id, attachment);
      // The IDs are those of the order, so that a listener cannot replace an instance of another workspace.
      const { handle, address } = await attachment.start();
      const { instance_id, deployment_id, revision_id } = spec;
      return localOf({ instance_id, deployment_id, revision_id, handle, address });
    };
    return {
      kind,
      async pin(image) {
        await requireListener();
        return call({ method: "pin", image });
      },
      ensure(spec) {
        const { instance_id } = spec;
        const running = starting.get(instance_id) ?? ensure(spec).finally(() => starting.delete(instance_id));
        starting.set(instance_id, running);
        return running;
      },
      probe: (ref) => call({ method: "probe", ref }),
      async stop(ref, { grace_ms }) {
        // First, because an attachment asks for the instance again after an interruption.
        detach(ref.instance_id);
        await unlessDeleted(call({ method: "stop", ref, grace_ms }), undefined);
        await tunnels.close(listener_id, ref.instance_id);
      },
      async list() {
        const listing = unlessDeleted(call({ method: "list" }), []);
        const [found, own] = await Promise.all([listing, instancesOf(kind)]);
        return Promise.all(found.map((ref) => (own.has(ref.instance_id) ? localOf(ref) : { ...ref, address: "" })));
      },
      async remove({ deployment_id, artifacts }) {
        await unlessDeleted(call({ method: "remove", deployment_id, artifacts }), undefined);
      },
      async close() {
        for (const instance_id of [...attachments.keys()]) detach(instance_id);
      },
    };
  }
}

const RETRY_MS = 1_000;
/** Lines that are read before the earlier ones are stored. */
const MAX_UNSTORED = 1_000;

const errorOf = ({ message, is_permanent }: Failure): Error =>
  is_permanent ? new DeployError(message) : new Error(message);

/**
 * An instance that a listener was asked for, and its log. When the connection ends, the listener is asked again as soon as it is
 * connected, and continues the log after the last line that was stored.
 */
class Attachment {
  readonly #connections: ListenerConnections;
  readonly #listener_id: string;
  readonly #spec: InstanceSpec;
  readonly #closing = new AbortController();
  #stream: ClientHttp2Stream | undefined;

  constructor(connections: ListenerConnections, listener_id: string, spec: InstanceSpec) {
    this.#connections = connections;
    this.#listener_id = listener_id;
    this.#spec = spec;
  }

  /**
   * Resolves when the instance was started. The log is followed until {@link close}.
   *
   * @throws DeployError, ListenerUnavailableError
   */
  async start(): Promise<InstanceRef> {
    const started = Promise.withResolvers<InstanceRef>();
    void this.#attach(started.resolve)
      .then(() => started.reject(new ListenerUnavailableError(this.#listener_id)), started.reject)
      .finally(() => this.#followAgain());
    try {
      return await started.promise;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#closing.abort();
    // The listener ends its response, after it has received which lines are stored.
    this.#stream?.end();
  }

  async #followAgain(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
      await this.#connections.whenConnected(this.#listener_id, signal);
      if (!signal.aborted) await this.#attach(() => undefined).catch(() => undefined);
    }
  }

  /** Resolves when the request has ended. */
  async #attach(onStarted: (ref: InstanceRef) => void): Promise<void> {
    const { log, logsPersisted, ...order } = this.#spec;
    const { stream } = await this.#connections.open(this.#listener_id, PATHS.ensure, {
      first: `${JSON.stringify(order)}\n`,
    });
    this.#stream = stream;
    if (this.#closing.signal.aborted) stream.end();
    const acknowledge = acknowledger(stream, logsPersisted);
    limitLines(stream);
    try {
      for await (const text of createInterface({ input: stream })) {
        const report = Report.parse(JSON.parse(text)) as Report;
        if ("failure" in report) throw errorOf(report.failure);
        if ("ref" in report) onStarted(report.ref);
        else {
          log(report.line);
          acknowledge(report.n);
          if (report.n % MAX_UNSTORED === 0) await logsPersisted?.();
        }
      }
    } finally {
      // Also after a report that is invalid.
      stream.destroy();
    }
  }
}

/** Sends the number of the last line once it is stored, or ends the request if lines cannot be stored. */
function acknowledger(stream: ClientHttp2Stream, logsPersisted: InstanceSpec["logsPersisted"]): (n: number) => void {
  let [last, stored] = [0, 0];
  let isStoring = false;
  const store = async () => {
    try {
      while (stored < last) {
        const n = last;
        await logsPersisted?.();
        stored = n;
        if (stream.writable) stream.write(`${n}\n`);
      }
    } catch {
      stream.destroy();
    }
    isStoring = false;
  };
  return (n) => {
    last = n;
    if (isStoring) return;
    isStoring = true;
    void store();
  };
}
