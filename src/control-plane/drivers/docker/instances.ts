import { once } from "node:events";
import { chmod, lchown, lstat, mkdir, readdir, rename } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { dirname, join } from "node:path";
import type Docker from "dockerode";
import type { Log } from "../../../platform/lib/log.ts";
import { isLoopback } from "../../../platform/lib/loopback.ts";
import { dataFolder } from "../data-folder.ts";
import { DeployError, type InstanceCondition, type InstanceOrder, type InstanceRef } from "../driver.ts";
import type { OwnDatabases } from "../own-databases.ts";
import { containerName, containerOf, labelOf, refFrom, refOf, type Serving } from "./container.ts";
import { lastWordsOfContainer, logOf } from "./container-log.ts";
import { type Engine, ifThere, requestParts, saidBy, statusOf, unless } from "./engine.ts";
import { closeMachine } from "./firewall.ts";
import type { Folders } from "./folders.ts";
import type { Images } from "./images.ts";
import { LogFollower } from "./log-follower.ts";
import { positionFile, removePosition } from "./log-position.ts";
import { bridgeOf, ensureOwnNetwork, ownNetworkName } from "./network.ts";
import { ensureServiceId, findServiceId } from "./service-id.ts";

export interface InstanceSettings {
  engine: Engine;
  images: Images;
  folders: Folders;
  /**
   * A network of the engine; undefined: one that is made for this service. In `host` a container has the ports of this machine; in
   * others one is published on loopback.
   */
  network: string | undefined;
  databases: OwnDatabases;
  log: Log;
}

/**
 * Nothing but a change of the image or its settings helps: Threadmill refuses to start with 2; 126 and 127 are those of a program
 * that cannot be run, or is not there.
 */
const MISTAKEN: ReadonlySet<number> = new Set([2, 126, 127]);

/** The containers of deployments. Each has a name that only it can have, so that a service that starts anew finds it. */
export class Instances {
  readonly #settings: InstanceSettings;
  readonly #followers = new Map<string, LogFollower>();
  readonly #starting = new Map<string, Promise<InstanceRef>>();
  #network: Promise<void> = Promise.resolve();

  constructor(settings: InstanceSettings) {
    this.#settings = settings;
  }

  /** @throws DeployError when there is nothing to start, or the last start failed because of what the user brought */
  ensure(order: InstanceOrder): Promise<InstanceRef> {
    const { instance_id } = order;
    const under_way = this.#starting.get(instance_id);
    if (under_way) return under_way;
    const starting = this.#ensure(order).finally(() => this.#starting.delete(instance_id));
    this.#starting.set(instance_id, starting);
    return starting;
  }

  async #ensure(order: InstanceOrder): Promise<InstanceRef> {
    const there = await this.#inspect(containerName(order.instance_id));
    if (!there) return this.#create(order);
    // Whoever made it died before it could start it.
    if (there.State.Status === "created") return this.#start(there.Id, order);
    await this.#follow(there.Id, order);
    if (there.State.Running) return refOf(there);
    const { ExitCode: status } = there.State;
    const said = MISTAKEN.has(status) ? await lastWordsOfContainer(this.#settings.engine, there.Id) : undefined;
    // The next time it is tried again: a mistake can be outside of the image, too.
    await this.#remove(there.Id, order.instance_id);
    if (said === undefined) return this.#create(order);
    throw new DeployError(said === "" ? "The agent server refused to start." : said);
  }

  async #create(order: InstanceOrder): Promise<InstanceRef> {
    const { engine, images, folders, databases } = this.#settings;
    const { deployment_id, instance_id } = order;
    const database_url = await databases.of(order);
    const service_id = await ensureServiceId(folders.service_id);
    const network = this.#settings.network ?? ownNetworkName(service_id);
    requireReachable(database_url, network);
    const image = await images.have(order.artifact, order);
    const data_dir = dataFolder(folders, deployment_id);
    await moveEarlier(dataFolder({ data: folders.earlier_data }, deployment_id), data_dir);
    const user = await prepareFolder(data_dir, image.Config.User);
    const { NCPU: cores } = (await engine.ask((docker) => docker.info())) as { NCPU: number };
    const serving: Serving = network === "host" ? { network, port: await freePort() } : { network };
    const container = containerOf({ order, service_id, image, serving, data_dir, database_url, user, cores });
    try {
      if (this.#settings.network === undefined) await this.#ensureOwnNetwork(service_id, database_url);
      const options = requestParts<Docker.ContainerCreateOptions>({ name: containerName(instance_id) }, container);
      const made = await engine.ask((docker) => docker.createContainer(options));
      return await this.#start(made.id, order);
    } catch (error) {
      // Somebody else, who had the deployment before, was faster.
      if (statusOf(error) === 409) return this.#adopt(order, error);
      throw explain(error);
    }
  }

  /** One call at a time: of two, both would find that rules are missing and add them. */
  #ensureOwnNetwork(service_id: string, database_url: string | undefined): Promise<void> {
    const { engine, log } = this.#settings;
    const bridge = bridgeOf(service_id);
    const ensured = this.#network.then(async () => {
      await ensureOwnNetwork(engine, service_id);
      await closeMachine(bridge, database_url).catch((error: unknown) =>
        log.warn(
          { error, bridge },
          "containers can connect to ports of this machine and to link-local addresses, as no firewall rules could be set (docs/security.md#containers)",
        ),
      );
    });
    this.#network = ensured.catch(() => undefined);
    return ensured;
  }

  async #adopt(order: InstanceOrder, cause: unknown): Promise<InstanceRef> {
    const there = await this.#inspect(containerName(order.instance_id));
    if (!there?.State.Running) throw cause;
    await this.#follow(there.Id, order);
    return refOf(there);
  }

  /** What cannot be started is not left behind. */
  async #start(id: string, order: InstanceOrder): Promise<InstanceRef> {
    const { engine } = this.#settings;
    try {
      await engine.have((docker) => docker.getContainer(id).start());
    } catch (error) {
      await this.#remove(id, order.instance_id);
      throw explain(error);
    }
    const started = await this.#inspect(id);
    if (!started) throw new Error(`The container ${id} was removed while it was started.`);
    const ref = refOf(started);
    const at = ref.address === "" ? "" : ` at ${ref.address}`;
    const message = `The container ${id.slice(0, 12)} of the image ${order.artifact} was started${at}.`;
    order.log({ at: Date.now(), level: "INFO", message });
    await this.#follow(id, order);
    return ref;
  }

  async probe({ handle }: InstanceRef): Promise<InstanceCondition> {
    const container = await this.#inspect(handle);
    if (container?.State.Running) return { state: "running" };
    if (!container) return { state: "gone", reason: "its container is gone" };
    const said = await lastWordsOfContainer(this.#settings.engine, handle);
    return { state: "gone", reason: `${howItEnded(container.State)}${said === "" ? "" : `: ${said}`}` };
  }

  async stop({ instance_id, handle }: InstanceRef, grace_ms: number): Promise<void> {
    const { engine, folders } = this.#settings;
    // The row may know of a start before the last one.
    for (const name of [containerName(instance_id), handle]) {
      const container = await this.#inspect(name);
      if (!container) continue;
      const t = Math.ceil(grace_ms / 1000);
      await engine.have((docker) =>
        unless(docker.getContainer(container.Id).stop(requestParts<{ t: number }>({ t })), 304, 404),
      );
      await this.#remove(container.Id, instance_id);
    }
    await this.#unfollow(instance_id, { last: false });
    await removePosition(folders.positions, instance_id);
  }

  /** All containers of this service, or those of one deployment. */
  async list(deployment_id?: string): Promise<InstanceRef[]> {
    const { engine, folders } = this.#settings;
    const service_id = await findServiceId(folders.service_id);
    // Nothing was ever started, so nobody is asked: there may be no engine.
    if (service_id === undefined) return [];
    const of = deployment_id === undefined ? [] : [labelOf("deployment", deployment_id)];
    const label = [labelOf("service", service_id), ...of];
    const found = await engine.ask((docker) => docker.listContainers({ all: true, filters: { label } }));
    return found.map(({ Id, Labels, Ports }) => {
      const published = Ports.find(({ PublicPort }) => PublicPort)?.PublicPort;
      return published === undefined ? refFrom({ Id, Labels }) : refFrom({ Id, Labels }, published);
    });
  }

  /** Stops to listen to what containers say. */
  async close(): Promise<void> {
    await Promise.all([...this.#followers.keys()].map((instance_id) => this.#unfollow(instance_id, { last: false })));
  }

  /** Removes a container that has ended, or ends it, when all that it has written is told. */
  async #remove(id: string, instance_id: string): Promise<void> {
    await this.#unfollow(instance_id, { last: true });
    // In the middle of being removed (409) it is as good as gone.
    await this.#settings.engine.have((docker) =>
      unless(docker.getContainer(id).remove({ force: true, v: true }), 404, 409),
    );
  }

  /** From here on this order is told what the container writes, from where the last one has come to. */
  async #follow(id: string, order: InstanceOrder): Promise<void> {
    const { engine, folders, log } = this.#settings;
    const { instance_id } = order;
    await this.#unfollow(instance_id, { last: false });
    const onError = (error: unknown) => log.warn({ error, instance_id }, "lines of an instance were not told");
    const position = positionFile(folders.positions, instance_id, id);
    this.#followers.set(instance_id, new LogFollower(logOf(engine, id), position, order, onError));
  }

  async #unfollow(instance_id: string, options: { last: boolean }): Promise<void> {
    const follower = this.#followers.get(instance_id);
    this.#followers.delete(instance_id);
    await follower?.stop(options);
  }

  #inspect(name: string): Promise<Docker.ContainerInspectInfo | undefined> {
    return this.#settings.engine.ask((docker) => ifThere(docker.getContainer(name).inspect()));
  }
}

/** What the engine refuses as a bad request, it refuses because of the image or the resources: a program that is not there, say. */
const explain = (error: unknown): unknown =>
  statusOf(error) === 400 ? new DeployError(`The container could not be started: ${saidBy(error)}.`) : error;

function howItEnded({ OOMKilled, ExitCode, Error: error }: Docker.ContainerInspectInfo["State"]): string {
  if (OOMKilled) return "it had no memory left";
  return error ? `it could not be started (${error})` : `it exited with status ${ExitCode}`;
}

/** @throws DeployError when the database of the service is one that no container reaches */
function requireReachable(database_url: string | undefined, network: string): void {
  if (database_url === undefined || network === "host") return;
  const { hostname } = new URL(database_url);
  if (!isLoopback(hostname)) return;
  throw new DeployError(
    `Containers in the network "${network}" do not reach the service's database at ${hostname}: name it by another address in DATABASE_URL, or set THREADMILL_DOCKER_NETWORK=host.`,
  );
}

/** Containers that run go on in a folder that is moved. What a process of the deployment has is not root's, and stays. */
async function moveEarlier(earlier: string, folder: string): Promise<void> {
  const found = await lstat(earlier).catch(() => undefined);
  if (earlier === folder || found?.uid !== 0 || (await lstat(folder).catch(() => undefined))) return;
  await mkdir(dirname(folder), { recursive: true, mode: 0o700 });
  await rename(earlier, folder);
}

/**
 * Makes the data folder of a deployment. A service without the rights of root has containers run as itself, so that it can remove
 * what they write. Otherwise images run as whom they say, or as {@link NOBODY} where that is root, and whoever that is may write
 * here. Others of this machine do not get into the folder of the driver.
 *
 * @returns as whom containers are to run; undefined: as their image says
 */
async function prepareFolder(folder: string, image_user: string | undefined): Promise<string | undefined> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  if (uid !== 0) return `${uid}:${gid}`;
  await chmod(dirname(dirname(folder)), 0o700);
  await chmod(folder, 0o777);
  if (!isRoot(image_user)) return undefined;
  // Earlier versions ran such images as root. Nothing below subfolders: a container could put a link in the way.
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if ((await lstat(path)).uid === 0) await lchown(path, NOBODY, NOBODY);
  }
  return `${NOBODY}:${NOBODY}`;
}

/** The user `nobody` of most systems. */
const NOBODY = 65534;

/** Of the `USER` of an image, as the engine reads it: `<name or number>[:<group>]`. */
const isRoot = (user = ""): boolean => {
  const [name = ""] = user.split(":");
  return name === "root" || Number(name) === 0;
};

/** A port of this machine that was free a moment ago. Should it be taken since, the container ends and another is started. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
