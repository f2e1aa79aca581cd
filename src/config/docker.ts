import { ConfigError } from "../platform/errors.ts";
import { type Env, list } from "./values.ts";

/** Where deployments of images run. */
export interface DockerPlace {
  /** The Unix socket of a Docker engine on this machine. */
  docker_socket: string;
  /**
   * A network of the engine; undefined: one that is made for this service. In `host` containers have the ports of this machine; in
   * others one is published on loopback.
   */
  docker_network: string | undefined;
  /** Registries that images may come from, or beginnings of repositories. `localhost`: what was tagged on this machine. */
  docker_registries: readonly string[];
}

/** The engine has to be on this machine: it mounts folders of it, and publishes ports on its loopback. */
export function readDocker(env: Env): DockerPlace {
  const place = env.THREADMILL_DOCKER_HOST || "unix:///var/run/docker.sock";
  const [, docker_socket] = /^unix:\/\/(\/.+)$/.exec(place) ?? [];
  if (docker_socket === undefined) {
    throw new ConfigError(
      `THREADMILL_DOCKER_HOST must be the socket of an engine on this machine, like unix:///var/run/docker.sock, but is "${place}".`,
    );
  }
  return { docker_socket, docker_network: readNetwork(env), docker_registries: readRegistries(env) };
}

function readNetwork(env: Env): string | undefined {
  const network = env.THREADMILL_DOCKER_NETWORK || undefined;
  if (network === undefined || (/^[A-Za-z0-9][\w.-]*$/.test(network) && network !== "none")) return network;
  throw new ConfigError(
    `THREADMILL_DOCKER_NETWORK must be the name of a network of the Docker engine, like bridge or host, but is "${network}".`,
  );
}

/** With a host in Docker's sense: a first part without dot and port would belong to docker.io. */
const REGISTRY = /^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+:\d+)(\/[a-z0-9._-]+)*$/;

function readRegistries(env: Env): string[] {
  const registries = list(env.THREADMILL_DOCKER_REGISTRIES).map((entry) => entry.toLowerCase());
  const wrong = registries.find((entry) => !REGISTRY.test(entry));
  if (wrong === undefined) return registries;
  throw new ConfigError(
    `THREADMILL_DOCKER_REGISTRIES must be hosts of registries, with a part of their path if need be, like ghcr.io/acme, but has "${wrong}".`,
  );
}
