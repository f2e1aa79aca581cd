import { randomInt } from "node:crypto";
import { once } from "node:events";
import { chmod, lchown, lstat, mkdir, readdir, rename } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import type Docker from "dockerode";
import type { Log } from "../../../platform/lib/log.ts";
import { isLoopback } from "../../../platform/lib/safe-fetch/addresses.ts";
import { type DeploymentDatabases, dataFolder } from "../deployment-data.ts";
import { DeployError, type InstanceCondition, type InstanceRef, type InstanceSpec, infoLine } from "../driver.ts";
import { LogFollower, positionFile, removePosition } from "../log-follower.ts";
import { lastErrorIn } from "../log-line.ts";
import { containerName, containerOptions, type Endpoint, labelOf, refFrom, refOf } from "./container.ts";
import { containerStderrTail, logOf } from "./container-log.ts";
import {
  type Engine,
  engineMessage,
  separateParts,
  statusOf,
  undefinedIfMissing,
  undefinedOnStatus,
} from "./engine.ts";
import { ensureServiceId, type Folders, findServiceId } from "./folders.ts";
import type { Images } from "./images.ts";
import { bridgeOf, ensureOwnNetwork, ownNetworkName, restrictContainerTraffic } from "./network.ts";

interface ContainerSettings {
  engine: Engine;
  images: Images;
  folders: Folders;
  /**
   * Docker network. If undefined, the driver creates a network for this service. In the network `host`, a container listens on a port of
   * the machine; in other networks, its port is published on the loopback address.
   */
  network: string | undefined;
  databases: DeploymentDatabases;
  log: Log;
}

/**
 * Exit statuses of permanent failures: Threadmill exits with 2 on a configuration error; 126 and 127 mean that the program cannot
 * be executed or does not exist.
 */
const PERMANENT_STATUSES: ReadonlySet<number> = new Set([2, 126, 127]);

/** Runs instances as containers. After a restart of the service, containers are found by their unique names. */
export class Instances {
  readonly #settings: ContainerSettings;
  readonly #followers = new Map<string, LogFollower>();
  readonly #starting = new Map<string, Promise<InstanceRef>>();
  #network: Promise<void> = Promise.resolve();

  constructor(settings: ContainerSettings) {
    this.#settings = settings;
  }

  /** @throws DeployError when the image is unavailable, the image or the settings are invalid, or the database cannot be used */
  ensure(spec: InstanceSpec): Promise<InstanceRef> {
    const { instance_id } = spec;
    const running = this.#starting.get(instance_id);
    if (running) return running;
    const starting = this.#ensure(spec).finally(() => this.#starting.delete(instance_id));
    this.#starting.set(instance_id, starting);
    return starting;
  }

  async #ensure(spec: InstanceSpec): Promise<InstanceRef> {
    const existing = await this.#inspect(containerName(spec.instance_id));
    if (!existing) return this.#create(spec);
    // The service process that created the container ended before it started the container.
    if (existing.State.Status === "created") return this.#start(existing.Id, spec);
    await this.#follow(existing.Id, spec);
    if (existing.State.Running) return refOf(existing);
    const isPermanent = PERMANENT_STATUSES.has(existing.State.ExitCode);
    const stderr = isPermanent ? await containerStderrTail(this.#settings.engine, existing.Id) : undefined;
    // The container is removed even after a permanent failure. The next call tries again, because the cause may be outside the image.
    await this.#remove(existing.Id, spec.instance_id);
    if (stderr === undefined) return this.#create(spec);
    throw new DeployError(stderr === "" ? silentExit(existing.State.ExitCode) : lastErrorIn(stderr));
  }

  async #create(spec: InstanceSpec): Promise<InstanceRef> {
    const { engine, images, folders, databases } = this.#settings;
    const { deployment_id, instance_id } = spec;
    const service_id = await ensureServiceId(folders.service_id);
    const network = this.#settings.network ?? ownNetworkName(service_id);
    requireReachable(databases.server_url, network);
    const database_url = await databases.of(spec);
    const image = await images.ensure(spec.artifact, spec);
    const data_dir = dataFolder(folders, deployment_id);
    await moveLegacyFolder(dataFolder({ data: folders.legacy_data }, deployment_id), data_dir);
    const user = await prepareFolder(data_dir, image.Config.User);
    const { NCPU: cores } = (await engine.call((docker) => docker.info())) as { NCPU: number };
    const endpoint: Endpoint = network === "host" ? { network, port: await freePort() } : { network };
    const container = containerOptions({ spec, service_id, image, endpoint, data_dir, database_url, user, cores });
    try {
      if (this.#settings.network === undefined) await this.#ensureOwnNetwork(service_id, database_url);
      const options = separateParts<Docker.ContainerCreateOptions>({ name: containerName(instance_id) }, container);
      const created = await engine.call((docker) => docker.createContainer(options));
      return await this.#start(created.id, spec);
    } catch (error) {
      // The process that previously held the deployment's lease has created the container concurrently.
      if (statusOf(error) === 409) return this.#adopt(spec, error);
      throw toDeployError(error);
    }
  }

  /** Runs one call at a time, because concurrent calls would add a missing firewall rule twice. */
  #ensureOwnNetwork(service_id: string, database_url: string | undefined): Promise<void> {
    const { engine, log } = this.#settings;
    const bridge = bridgeOf(service_id);
    const ensured = this.#network.then(async () => {
      await ensureOwnNetwork(engine, service_id);
      await restrictContainerTraffic(bridge, database_url).catch((error: unknown) =>
        log.warn(
          { error, bridge, see: "docs/security.md#containers" },
          "could not set the firewall rules, so containers can connect to this machine and to link-local addresses",
        ),
      );
    });
    this.#network = ensured.catch(() => undefined);
    return ensured;
  }

  async #adopt(spec: InstanceSpec, cause: unknown): Promise<InstanceRef> {
    const existing = await this.#inspect(containerName(spec.instance_id));
    if (!existing?.State.Running) throw cause;
    await this.#follow(existing.Id, spec);
    return refOf(existing);
  }

  async #start(id: string, spec: InstanceSpec): Promise<InstanceRef> {
    const { engine } = this.#settings;
    try {
      await engine.callLong((docker) => docker.getContainer(id).start());
    } catch (error) {
      await this.#remove(id, spec.instance_id);
      throw toDeployError(error);
    }
    const started = await this.#inspect(id);
    if (!started) throw new Error(`The container ${id} was removed while it was starting.`);
    const ref = refOf(started);
    const at = ref.address === "" ? "" : ` at ${ref.address}`;
    spec.log(infoLine(`Started container ${id.slice(0, 12)} (image ${spec.artifact})${at}.`));
    await this.#follow(id, spec);
    return ref;
  }

  async probe({ handle, address }: InstanceRef): Promise<InstanceCondition> {
    const container = await this.#inspect(handle);
    if (container?.State.Running) {
      // Docker publishes another port when a container starts again.
      const isMoved = address !== "" && refOf(container).address !== address;
      return isMoved ? { state: "ended", reason: "the container was restarted by Docker" } : { state: "running" };
    }
    if (!container) return { state: "ended", reason: "the container no longer exists" };
    const stderr = await containerStderrTail(this.#settings.engine, handle);
    return { state: "ended", reason: `${exitReason(container.State)}${stderr === "" ? "" : `: ${stderr}`}` };
  }

  async stop({ instance_id, handle }: InstanceRef, grace_ms: number): Promise<void> {
    const { engine, folders } = this.#settings;
    // The stored handle may refer to an earlier container, so the container is also looked up by its name.
    for (const name of [containerName(instance_id), handle]) {
      const container = await this.#inspect(name);
      if (!container) continue;
      const t = Math.ceil(grace_ms / 1000);
      await engine.callLong((docker) =>
        undefinedOnStatus(docker.getContainer(container.Id).stop(separateParts<{ t: number }>({ t })), 304, 404),
      );
      await this.#remove(container.Id, instance_id);
    }
    await this.#unfollow(instance_id, { last: false });
    await removePosition(folders.positions, instance_id);
  }

  /** Lists the containers of this service, or only those of a deployment. */
  async list(deployment_id?: string): Promise<InstanceRef[]> {
    const { engine, folders } = this.#settings;
    const service_id = await findServiceId(folders.service_id);
    // Without a service ID, no container was ever started. Docker is not called, because it may not be installed.
    if (service_id === undefined) return [];
    const label = [labelOf("service", service_id)];
    if (deployment_id !== undefined) label.push(labelOf("deployment", deployment_id));
    const found = await engine.call((docker) => docker.listContainers({ all: true, filters: { label } }));
    return found.map(({ Id, Labels, Ports }) =>
      refFrom({ Id, Labels }, Ports.find(({ PublicPort }) => PublicPort)?.PublicPort),
    );
  }

  async close(): Promise<void> {
    await Promise.all([...this.#followers.keys()].map((instance_id) => this.#unfollow(instance_id, { last: false })));
  }

  /** Removes a container. If the container has ended, reads the rest of the log first. */
  async #remove(id: string, instance_id: string): Promise<void> {
    await this.#unfollow(instance_id, { last: true });
    // Status 404: already removed. Status 409: another removal is in progress.
    await this.#settings.engine.callLong((docker) =>
      undefinedOnStatus(docker.getContainer(id).remove({ force: true, v: true }), 404, 409),
    );
  }

  /** Sends the log of a container to `spec.log`, starting at the stored position. */
  async #follow(id: string, spec: InstanceSpec): Promise<void> {
    const { engine, folders, log } = this.#settings;
    const { instance_id } = spec;
    await this.#unfollow(instance_id, { last: false });
    const onError = (error: unknown) => log.warn({ error, instance_id }, "could not read the instance log");
    const position = positionFile(folders.positions, instance_id, id);
    this.#followers.set(instance_id, new LogFollower(logOf(engine, id), position, spec, onError));
  }

  async #unfollow(instance_id: string, options: { last: boolean }): Promise<void> {
    const follower = this.#followers.get(instance_id);
    this.#followers.delete(instance_id);
    await follower?.stop(options);
  }

  #inspect(name: string): Promise<Docker.ContainerInspectInfo | undefined> {
    return this.#settings.engine.call((docker) => undefinedIfMissing(docker.getContainer(name).inspect()));
  }
}

/** Docker returns status 400 when the image or the resources are invalid, for example when a program does not exist. */
const toDeployError = (error: unknown): unknown =>
  statusOf(error) === 400 ? new DeployError(`The container could not be started: ${engineMessage(error)}.`) : error;

const silentExit = (status: number): string =>
  `The container exited with status ${status} and wrote nothing to stderr. Check the start command and the configuration of the image.`;

function exitReason({ OOMKilled, ExitCode, Error: error }: Docker.ContainerInspectInfo["State"]): string {
  if (OOMKilled) return "the container ran out of memory";
  return error ? `the container could not be started (${error})` : `the container exited with status ${ExitCode}`;
}

/** @throws DeployError when containers of the network cannot reach the database of the service */
function requireReachable(database_url: string | undefined, network: string): void {
  if (database_url === undefined || network === "host") return;
  const { hostname } = new URL(database_url);
  if (!isLoopback(hostname)) return;
  throw new DeployError(
    `Containers in the network "${network}" cannot reach the Postgres server at ${hostname}: use a non-loopback address in DATABASE_URL, or set THREADMILL_DOCKER_NETWORK=host.`,
  );
}

/** Moves a root-owned data folder of an older version. Other folders belong to the process driver. Running containers keep their mount. */
async function moveLegacyFolder(legacy: string, folder: string): Promise<void> {
  const found = await lstat(legacy).catch(() => undefined);
  if (legacy === folder || found?.uid !== 0 || (await lstat(folder).catch(() => undefined))) return;
  await mkdir(dirname(folder), { recursive: true, mode: 0o700 });
  await rename(legacy, folder);
}

/**
 * Creates the data folder of a deployment. If the service is not root, containers run as the service's user, so that it can remove their
 * files. Otherwise, they run as the image's user, or as {@link UNPRIVILEGED_UID} instead of root. The data folder is then world-writable,
 * but other users of the machine cannot enter the driver's folder.
 *
 * @returns the user of the containers; undefined for the user of the image
 */
async function prepareFolder(folder: string, image_user: string | undefined): Promise<string | undefined> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  if (uid !== 0) return `${uid}:${gid}`;
  await chmod(dirname(dirname(folder)), 0o700);
  await chmod(folder, 0o777);
  if (!isRoot(image_user)) return undefined;
  // Earlier versions ran such images as root. Contents of subfolders are skipped, because a container could put a link there.
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if ((await lstat(path)).uid === 0) await lchown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID);
  }
  return `${UNPRIVILEGED_UID}:${UNPRIVILEGED_UID}`;
}

/** UID that most systems reserve for an unprivileged user. */
const UNPRIVILEGED_UID = 65534;

/** @param user the `USER` of an image: `<name or number>[:<group>]` */
const isRoot = (user = ""): boolean => {
  const [name = ""] = user.split(":");
  return name === "root" || Number(name) === 0;
};

/** Linux assigns ports from 32768 on to outgoing connections, and Kubernetes uses those from 30000 on. */
const PORTS = { first: 20_000, after_last: 30_000 };
const MAX_TRIES = 100;

/** Returns a free port. If another process takes it before the container does, the container ends and is started again. */
async function freePort(): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = randomInt(PORTS.first, PORTS.after_last);
    const server = createServer().listen(port, "127.0.0.1");
    try {
      await once(server, "listening");
    } catch (error) {
      if (tries === MAX_TRIES) throw error;
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
