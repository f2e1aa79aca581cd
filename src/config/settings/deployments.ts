import { ConfigError } from "../../platform/errors.ts";
import { hostName } from "./server.ts";
import { duration, enabled, integer, list, oneOf, setting, text } from "./setting.ts";

/** User ids that systemd reserves for dynamic users and for user namespaces of containers. */
const USER_IDS = "61184-65519";

/** A Docker reference needs a registry with a dot or a port; a first part without either belongs to docker.io. */
const REGISTRY = /^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+:\d+)(\/[a-z0-9._-]+)*$/;

/** How deployments are built, started and reached. */
export const deploymentSettings = {
  deployments_domain: setting("THREADMILL_DEPLOYMENTS_DOMAIN", hostName, {
    meaning:
      "Host name such as `agents.example.com`: deployments are then also available at `{slug}.agents.example.com`. Its subdomains must resolve to this service.",
  }),
  reconciles: setting("THREADMILL_RECONCILES", enabled, {
    default: "1",
    meaning:
      "`0`: this process only routes requests to deployments. Other processes on the database build, start and watch them.",
  }),
  deploy_process: setting("THREADMILL_DEPLOY_PROCESS", oneOf(["on", "off", "auto"]), {
    default: "auto",
    meaning:
      "Whether source is built on this machine: `on`, `off` or `auto`. `auto` refuses it when there are several workspaces whose deployments could not be [isolated](control-plane.md#users-of-the-system). Existing builds run in any case.",
  }),
  deploy_user: setting("THREADMILL_DEPLOY_USER", readDeployUser, {
    default: USER_IDS,
    meaning:
      "If the service runs as root: range of user ids from which each deployment gets one for its builds and instances, or the name of one user for all deployments.",
  }),
  deploy_builds: setting("THREADMILL_DEPLOY_BUILDS", integer(1, 64), {
    default: "1",
    meaning: "Deployments that a process builds at the same time.",
  }),
  build_timeout_ms: setting("THREADMILL_DEPLOY_BUILD_TIMEOUT", duration(), {
    default: "15m",
    meaning: "Time limit of each command of a build.",
  }),
  deploy_deadline_ms: setting("THREADMILL_DEPLOY_DEADLINE", duration(), {
    default: "5m",
    meaning:
      "Time limit for the instances of a revision to become ready. It is four times as long while they make progress.",
  }),
  deploy_drain_ms: setting("THREADMILL_DEPLOY_DRAIN", duration(), {
    default: "5m",
    meaning: "Time limit for requests and streams in flight to finish in replaced instances.",
  }),
  deploy_lease_ms: setting("THREADMILL_DEPLOY_LEASE", duration(), {
    default: "15s",
    meaning:
      "Time that a process keeps a deployment without renewing its lease. Leases are renewed three times as often.",
  }),
  orphan_ms: setting("THREADMILL_DEPLOY_ORPHAN_TIMEOUT", duration(1, 365 * 86_400_000), {
    default: "24h",
    meaning: "Time that an instance that runs as a process serves without a control plane before it stops.",
  }),
  deployment_log_retention_ms: setting("THREADMILL_DEPLOYMENT_LOG_RETENTION", duration(0, 36_500 * 86_400_000), {
    default: "7d",
    meaning: "Time that log lines of builds and instances are kept, at most 50,000 per deployment.",
  }),
  deploy_git_protocols: setting("THREADMILL_DEPLOY_GIT_PROTOCOLS", list, {
    default: "https,ssh",
    meaning:
      "Comma-separated protocols by which git repositories may be fetched: `https`, `http`, `ssh`, `file`. With `ssh` a deployment needs a [key](control-plane.md#the-process-driver).",
  }),
  deploy_git_hosts: setting("THREADMILL_DEPLOY_GIT_HOSTS", list, {
    default: "",
    meaning:
      "Comma-separated hosts from which repositories may be fetched although they are in a private network or use plain http.",
  }),
  docker_socket: setting("THREADMILL_DOCKER_HOST", readDockerSocket, {
    default: "unix:///var/run/docker.sock",
    meaning: "Socket of the Docker engine that runs deployments of images. The engine must be on this machine.",
  }),
  docker_registries: setting("THREADMILL_DOCKER_REGISTRIES", readRegistries, {
    default: "",
    meaning:
      "Comma-separated registries from which images may come: hosts such as `docker.io`, optionally with a path prefix, such as `ghcr.io/acme`. `localhost` allows images tagged on this machine with a name below `localhost/`.",
  }),
  docker_network: setting("THREADMILL_DOCKER_NETWORK", readNetwork, {
    shown_default: "a network created by the service",
    meaning:
      "Existing network for the containers. Without it the service creates a network in which containers cannot reach each other. `host` uses the ports of the machine. See [the Docker driver](control-plane.md#the-docker-driver).",
  }),
  rollout: setting(
    "THREADMILL_ROLLOUT",
    (value, name) => integer(0, Number.MAX_SAFE_INTEGER)(value, name) || undefined,
    {
      visibility: "internal",
      meaning:
        "Rollout that an instance belongs to. The instance executes no runs before that rollout receives traffic.",
    },
  ),
  control_plane_file: setting("THREADMILL_CONTROL_PLANE_FILE", text, {
    visibility: "internal",
    meaning: "File whose modification time a running control plane updates, for instances that run as processes.",
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
