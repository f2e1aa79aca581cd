import { ConfigError } from "../errors.ts";
import type { Env } from "./values.ts";

/** Where deployments of images run. */
export interface DockerPlace {
  /** The Unix socket of a Docker engine on this machine. */
  docker_socket: string;
  /** A network of the engine. In `host` containers have the ports of this machine; in others one is published on loopback. */
  docker_network: string;
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
  const docker_network = env.THREADMILL_DOCKER_NETWORK || "bridge";
  if (/^[A-Za-z0-9][\w.-]*$/.test(docker_network) && docker_network !== "none")
    return { docker_socket, docker_network };
  throw new ConfigError(
    `THREADMILL_DOCKER_NETWORK must be the name of a network of the Docker engine, like bridge or host, but is "${docker_network}".`,
  );
}
