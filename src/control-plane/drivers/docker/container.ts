import type { ContainerCreateOptions, ContainerInspectInfo, ImageInspectInfo } from "dockerode";
import type { InstanceRef, InstanceSpec } from "../driver.ts";
import { CONTAINER_PORT, DATA, imageEnvironment, limitsFor, TMPFS } from "../image-environment.ts";

const CONTAINER_PORT_KEY = `${CONTAINER_PORT}/tcp`;

export const LABELS = {
  service: "threadmill.service",
  instance: "threadmill.instance",
  deployment: "threadmill.deployment",
  revision: "threadmill.revision",
  port: "threadmill.port",
} as const;

/** Label of images. If its value is `true`, containers of the image get a writable root file system. */
const WRITABLE_ROOT = "threadmill.writable-root";

/** Limit for processes and threads. An agent server has about 20 threads for each graph host. */
const MAX_PIDS = 1024;

const MB = 2 ** 20;
/** The service copies the log of a container, so the Docker Engine needs to keep only a small part. */
const LOG_CONFIG = { Type: "json-file", Config: { "max-size": "32m", "max-file": "3" } };

/** Network and port of a container. In the network `host` the service chooses the port, otherwise Docker does. */
export type Endpoint = { network: string } | { network: "host"; port: number };

interface ContainerInput {
  spec: InstanceSpec;
  service_id: string;
  image: Pick<ImageInspectInfo, "Config">;
  endpoint: Endpoint;
  /** The data folder of the deployment on this machine. */
  data_dir: string;
  /** If undefined, the instance uses the embedded database in the data folder. */
  database_url: string | undefined;
  /** `<uid>:<gid>`. If undefined, the container runs as the user of the image. */
  user: string | undefined;
  /** CPU cores of the Docker host. Docker rejects a higher limit. */
  cores: number;
}

/** Returns the container name of an instance. Docker enforces unique names, so an instance never has two containers. */
export const containerName = (instance_id: string): string => `threadmill-${instance_id}`;

export const labelOf = (kind: "service" | "deployment", id: string): string => `${LABELS[kind]}=${id}`;

export function containerOptions(input: ContainerInput): ContainerCreateOptions {
  const { spec, service_id, image, endpoint, data_dir, user } = input;
  const { cpus, memory_mb } = limitsOf(input);
  const isOnHost = "port" in endpoint;
  const memory = memory_mb * MB;
  return {
    Image: spec.artifact,
    ...(user !== undefined && { User: user }),
    Env: Object.entries(environmentOf(input)).map(([name, value]) => `${name}=${value}`),
    Labels: {
      [LABELS.service]: service_id,
      [LABELS.instance]: spec.instance_id,
      [LABELS.deployment]: spec.deployment_id,
      [LABELS.revision]: spec.revision_id,
      // Set even if empty, so that a label of the image cannot set the port to which the router connects.
      [LABELS.port]: isOnHost ? String(endpoint.port) : "",
    },
    ...(!isOnHost && { ExposedPorts: { [CONTAINER_PORT_KEY]: {} } }),
    HostConfig: {
      NetworkMode: endpoint.network,
      ...(!isOnHost && { PortBindings: { [CONTAINER_PORT_KEY]: [{ HostIp: "127.0.0.1", HostPort: "" }] } }),
      Binds: [`${data_dir}:${DATA}`],
      // When the program ends, the init process ends the container with the exit status of the program, even if a signal killed it.
      Init: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      ReadonlyRootfs: image.Config.Labels?.[WRITABLE_ROOT] !== "true",
      Tmpfs: { [TMPFS]: `rw,noexec,nosuid,nodev,mode=1777,size=${Math.floor(memory / 2)}` },
      LogConfig: LOG_CONFIG,
      PidsLimit: MAX_PIDS,
      NanoCpus: Math.round(cpus * 1e9),
      Memory: memory,
      MemorySwap: memory,
    },
  };
}

const limitsOf = ({ spec, cores }: ContainerInput): { cpus: number; memory_mb: number } => {
  const { cpus, memory_mb } = limitsFor(spec);
  return { cpus: Math.min(cpus, cores), memory_mb };
};

function environmentOf(input: ContainerInput): Record<string, string> {
  const { spec, endpoint, database_url, user } = input;
  return imageEnvironment({
    spec,
    limits: limitsOf(input),
    database_url,
    // If the container runs as a different user, that user cannot access the home folder of the image's user.
    home: user === undefined ? undefined : TMPFS,
    host: "port" in endpoint ? "127.0.0.1" : "0.0.0.0",
    port: "port" in endpoint ? endpoint.port : CONTAINER_PORT,
  });
}

/** Returns the reference of an instance. Outside the network `host`, the address is empty if the container has exited. */
export function refOf({ Id, Config, NetworkSettings }: ContainerInspectInfo): InstanceRef {
  const published = NetworkSettings.Ports?.[CONTAINER_PORT_KEY]?.[0]?.HostPort;
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
