import type { ContainerCreateOptions, ContainerInspectInfo, ImageInspectInfo } from "dockerode";
import type { InstanceOrder, InstanceRef } from "../driver.ts";

/** The port that an image is told to serve at, in a network of its own. */
const OWN_PORT = 8000;
const OWN_PORT_KEY = `${OWN_PORT}/tcp`;

export const LABELS = {
  service: "threadmill.service",
  instance: "threadmill.instance",
  deployment: "threadmill.deployment",
  revision: "threadmill.revision",
  port: "threadmill.port",
} as const;

/** Where the data folder of a deployment is in its containers. */
const DATA = "/threadmill-data";
/** A tmpfs. */
const TEMPORARY = "/tmp";
/** An image with this label and the value `true` gets a writable root file system. */
const WRITABLE_ROOT = "threadmill.writable-root";

/** Of deployments whose resource_spec says nothing. */
const DEFAULT_CPUS = 2;
const DEFAULT_MEMORY_MB = 2048;
/** Threads count as well: an agent server has some 20 for each of its graph hosts. */
const MAX_PIDS = 1024;

const MB = 2 ** 20;
/** A container's log is told all the while, so little of it need stay with the engine. */
const LOG_CONFIG = { Type: "json-file", Config: { "max-size": "32m", "max-file": "3" } };

/** Where a container serves: at a port of the host that the engine chooses, or, in the network `host`, at one that is chosen before. */
export type Serving = { network: string } | { network: "host"; port: number };

export interface ContainerPlan {
  order: InstanceOrder;
  service_id: string;
  image: Pick<ImageInspectInfo, "Config">;
  serving: Serving;
  /** The data folder of the deployment on this machine. */
  data_dir: string;
  /** Undefined: the embedded database, in the data folder. */
  database_url: string | undefined;
  /** `<uid>:<gid>` of the service, so that it can remove what containers write; undefined: the image's own. */
  user: string | undefined;
  /** Cores that the engine has: it refuses to promise more. */
  cores: number;
}

/** What a container of an instance is called. The engine takes each name once, so there are never two. */
export const containerName = (instance_id: string): string => `threadmill-${instance_id}`;

export const labelOf = (what: "service" | "deployment", id: string): string => `${LABELS[what]}=${id}`;

/** Everything but its name. */
export function containerOf(plan: ContainerPlan): ContainerCreateOptions {
  const { order, service_id, image, serving, data_dir, user } = plan;
  const { cpus, memory_mb } = limitsOf(plan);
  const isOnHost = "port" in serving;
  const memory = memory_mb * MB;
  return {
    Image: order.artifact,
    ...(user !== undefined && { User: user }),
    Env: Object.entries(environmentOf(plan)).map(([name, value]) => `${name}=${value}`),
    Labels: {
      [LABELS.service]: service_id,
      [LABELS.instance]: order.instance_id,
      [LABELS.deployment]: order.deployment_id,
      [LABELS.revision]: order.revision_id,
      // Also when empty: a label of the image with this name must not choose the port that the router connects to.
      [LABELS.port]: isOnHost ? String(serving.port) : "",
    },
    ...(!isOnHost && { ExposedPorts: { [OWN_PORT_KEY]: {} } }),
    HostConfig: {
      NetworkMode: serving.network,
      ...(!isOnHost && { PortBindings: { [OWN_PORT_KEY]: [{ HostIp: "127.0.0.1", HostPort: "" }] } }),
      Binds: [`${data_dir}:${DATA}`],
      // Ends with all that the image's program has started, and hands its status on, also when it was killed.
      Init: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      ReadonlyRootfs: image.Config.Labels?.[WRITABLE_ROOT] !== "true",
      Tmpfs: { [TEMPORARY]: `rw,noexec,nosuid,nodev,mode=1777,size=${Math.floor(memory / 2)}` },
      LogConfig: LOG_CONFIG,
      PidsLimit: MAX_PIDS,
      NanoCpus: Math.round(cpus * 1e9),
      Memory: memory,
      MemorySwap: memory,
    },
  };
}

const limitsOf = ({ order: { resources }, cores }: ContainerPlan): { cpus: number; memory_mb: number } => ({
  cpus: Math.min(resources.cpu_limit ?? DEFAULT_CPUS, cores),
  memory_mb: resources.memory_limit_mb ?? DEFAULT_MEMORY_MB,
});

/** Nothing of the service's own: what the deployment has, and what the instance needs to know. */
function environmentOf(plan: ContainerPlan): Record<string, string> {
  const { order, serving, database_url, user } = plan;
  const { cpus, memory_mb } = limitsOf(plan);
  return {
    // The home of the image's own user is closed to another.
    ...(user !== undefined && { HOME: TEMPORARY }),
    ...order.env,
    API_KEYS: order.api_key,
    PORT: String("port" in serving ? serving.port : OWN_PORT),
    THREADMILL_HOST: "port" in serving ? "127.0.0.1" : "0.0.0.0",
    THREADMILL_DATA: DATA,
    // The old and the new revision are there at the same time.
    ...(database_url === undefined && { THREADMILL_SHARE_DATA: "1" }),
    // Empty, it keeps a DATABASE_URL that is the graphs' own from being taken for this one.
    THREADMILL_DATABASE_URL: database_url ?? "",
    THREADMILL_HOST_MEMORY_MB: String(Math.max(64, memory_mb)),
    THREADMILL_HOSTS: String(Math.max(1, Math.floor(cpus))),
  };
}

/** Of a container that has ended before it was looked at, the address is empty. */
export function refOf({ Id, Config, NetworkSettings }: ContainerInspectInfo): InstanceRef {
  const published = NetworkSettings.Ports?.[OWN_PORT_KEY]?.[0]?.HostPort;
  return refFrom({ Id, Labels: Config.Labels }, Config.Labels[LABELS.port] || published);
}

export function refFrom(
  { Id, Labels }: { Id: string; Labels: Readonly<Record<string, string>> },
  port: string | number | undefined = Labels[LABELS.port],
): InstanceRef {
  const label = (name: keyof typeof LABELS) => Labels[LABELS[name]] ?? "";
  return {
    instance_id: label("instance"),
    deployment_id: label("deployment"),
    revision_id: label("revision"),
    handle: Id,
    address: port ? `http://127.0.0.1:${port}` : "",
  };
}
