import { ConfigError } from "../../platform/errors.ts";
import { hostName } from "./server.ts";
import { duration, enabled, integer, list, oneOf, optional, setting, text } from "./setting.ts";

/** User ids that systemd reserves for dynamic users and for user namespaces of containers. */
const USER_IDS = "61184-65519";

/** A Docker reference needs a registry with a dot or a port; a first part without either belongs to docker.io. */
const REGISTRY = /^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+:\d+)(\/[a-z0-9._-]+)*$/;

/** How deployments are built, started and reached. */
export const deploymentSettings = {
  deployments_domain: optional({
    env: ["THREADMILL_DEPLOYMENTS_DOMAIN"],
    visibility: "advanced",
    read: hostName,
    meaning:
      "Host name such as `agents.example.com`: deployments are then also reached at `{slug}.agents.example.com`. Names below it must resolve to this service.",
  }),
  reconciles: setting({
    env: ["THREADMILL_RECONCILES"],
    visibility: "advanced",
    default: "1",
    read: enabled,
    meaning:
      "`0`: this process routes requests to deployments and leaves building, starting and watching them to other processes on the database.",
  }),
  deploy_process: setting({
    env: ["THREADMILL_DEPLOY_PROCESS"],
    visibility: "advanced",
    default: "auto",
    read: oneOf(["on", "off", "auto"]),
    meaning:
      "Whether source is built on this machine: `on`, `off` or `auto`. `auto` refuses it when there are several workspaces whose deployments could not be [isolated](control-plane.md#users-of-the-system). Existing builds run in any case.",
  }),
  deploy_user: setting({
    env: ["THREADMILL_DEPLOY_USER"],
    visibility: "advanced",
    default: USER_IDS,
    read: readDeployUser,
    meaning:
      "Where the service runs as root: range of user ids of which each deployment gets one for its builds and instances, or the name of one user for all.",
  }),
  deploy_builds: setting({
    env: ["THREADMILL_DEPLOY_BUILDS"],
    visibility: "advanced",
    default: "1",
    read: integer(1, 64),
    meaning: "Deployments that a process builds at the same time.",
  }),
  build_timeout_ms: setting({
    env: ["THREADMILL_DEPLOY_BUILD_TIMEOUT"],
    visibility: "advanced",
    default: "15m",
    read: duration(),
    meaning: "Time limit of each command of a build.",
  }),
  deploy_deadline_ms: setting({
    env: ["THREADMILL_DEPLOY_DEADLINE"],
    visibility: "advanced",
    default: "5m",
    read: duration(),
    meaning:
      "Time that the instances of a revision have to become ready. The limit is four times as long while they make progress.",
  }),
  deploy_drain_ms: setting({
    env: ["THREADMILL_DEPLOY_DRAIN"],
    visibility: "advanced",
    default: "5m",
    read: duration(),
    meaning: "Time that requests and streams in flight have to end in instances that were replaced.",
  }),
  deploy_lease_ms: setting({
    env: ["THREADMILL_DEPLOY_LEASE"],
    visibility: "advanced",
    default: "15s",
    read: duration(),
    meaning:
      "Time that a process keeps a deployment without renewing its lease. Leases are renewed three times as often.",
  }),
  orphan_ms: setting({
    env: ["THREADMILL_DEPLOY_ORPHAN_TIMEOUT"],
    visibility: "advanced",
    default: "24h",
    read: duration(1, 365 * 86_400_000),
    meaning: "Time that an instance that runs as a process serves without a control plane before it stops.",
  }),
  deployment_log_retention_ms: setting({
    env: ["THREADMILL_DEPLOYMENT_LOG_RETENTION"],
    visibility: "advanced",
    default: "7d",
    read: duration(0, 36_500 * 86_400_000),
    meaning: "Time that log lines of builds and instances are kept, at most 50,000 per deployment.",
  }),
  deploy_git_protocols: setting({
    env: ["THREADMILL_DEPLOY_GIT_PROTOCOLS"],
    visibility: "advanced",
    default: "https,ssh",
    read: list,
    meaning:
      "Comma-separated protocols by which git repositories may be fetched: `https`, `http`, `ssh`, `file`. With `ssh` a deployment needs a [key](control-plane.md#the-process-driver).",
  }),
  deploy_git_hosts: setting({
    env: ["THREADMILL_DEPLOY_GIT_HOSTS"],
    visibility: "advanced",
    default: "",
    read: list,
    meaning:
      "Comma-separated hosts from which repositories may be fetched although they are in a private network or use plain http.",
  }),
  docker_socket: setting({
    env: ["THREADMILL_DOCKER_HOST"],
    visibility: "advanced",
    default: "unix:///var/run/docker.sock",
    read: readDockerSocket,
    meaning: "Socket of the Docker engine that runs deployments of images. The engine must be on this machine.",
  }),
  docker_registries: setting({
    env: ["THREADMILL_DOCKER_REGISTRIES"],
    visibility: "advanced",
    default: "",
    read: readRegistries,
    meaning:
      "Comma-separated registries from which images may come: hosts such as `docker.io`, or with the beginning of a path, such as `ghcr.io/acme`. `localhost` allows images tagged on this machine with a name below `localhost/`.",
  }),
  docker_network: optional({
    env: ["THREADMILL_DOCKER_NETWORK"],
    visibility: "advanced",
    shown_default: "a network created by the service",
    read: readNetwork,
    meaning:
      "Existing network for the containers. Without it the service creates a network in which containers cannot reach each other. `host` uses the ports of the machine. See [the Docker driver](control-plane.md#the-docker-driver).",
  }),
  rollout: optional({
    env: ["THREADMILL_ROLLOUT"],
    visibility: "internal",
    read: (value, name) => integer(0, Number.MAX_SAFE_INTEGER)(value, name) || undefined,
    meaning: "Rollout that an instance belongs to. It executes no runs before that rollout has the traffic.",
  }),
  control_plane_file: optional({
    env: ["THREADMILL_CONTROL_PLANE_FILE"],
    visibility: "internal",
    read: text,
    meaning:
      "File whose modification time a running control plane keeps updating, for instances that run as processes.",
  }),
};

function readDeployUser(value: string, name: string): { name: string } | { from: number; to: number } {
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(value) ?? [];
  if (from !== undefined && to !== undefined && Number(from) > 0 && Number(from) <= Number(to))
    return { from: Number(from), to: Number(to) };
  if (/^[a-z_][\w.-]*\$?$/i.test(value) && value !== "root") return { name: value };
  throw new ConfigError(
    `${name} must be a range of user ids above 0, such as ${USER_IDS}, or the name of a user other than root, but is "${value}".`,
  );
}

/** The engine must be local: the driver mounts folders of this machine and publishes ports on its loopback. */
function readDockerSocket(value: string, name: string): string {
  const [, socket] = /^unix:\/\/(\/.+)$/.exec(value) ?? [];
  if (socket !== undefined) return socket;
  throw new ConfigError(
    `${name} must be the socket of an engine on this machine, such as unix:///var/run/docker.sock, but is "${value}".`,
  );
}

function readNetwork(value: string, name: string): string {
  if (/^[A-Za-z0-9][\w.-]*$/.test(value) && value !== "none") return value;
  throw new ConfigError(`${name} must be the name of a Docker network, such as bridge or host, but is "${value}".`);
}

function readRegistries(value: string, name: string): readonly string[] {
  const registries = list(value.toLowerCase(), name);
  const wrong = registries.find((entry) => !REGISTRY.test(entry));
  if (wrong === undefined) return registries;
  throw new ConfigError(
    `${name} must list hosts of registries, optionally with a path, such as ghcr.io/acme, but contains "${wrong}".`,
  );
}
