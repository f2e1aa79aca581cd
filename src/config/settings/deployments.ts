import { ConfigError } from "../../platform/errors.ts";
import { hostName } from "./server.ts";
import { duration, enabled, integer, list, MAX_RETENTION_MS, oneOf, setting, text } from "./setting.ts";

/** User IDs that systemd reserves for dynamic users. */
const USER_IDS = "61184-65519";

/** In a Docker image name, the first part is a registry host only if it is `localhost` or contains a dot or a port. */
const REGISTRY = /^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+:\d+)(\/[a-z0-9._-]+)*$/;

/** Settings that determine how deployments are built, run and reached. */
export const deploymentSettings = {
  deployments_domain: setting("THREADMILL_DEPLOYMENTS_DOMAIN", hostName, {
    meaning:
      "Host name, such as `agents.example.com`, whose subdomains resolve to this service. Each deployment is then also available at `{slug}.agents.example.com`.",
  }),
  reconciles: setting("THREADMILL_RECONCILES", enabled, {
    default: "1",
    meaning:
      "Whether this process builds, starts and monitors deployments. With `0`, it only routes requests to deployments that are managed by other processes using the same database.",
  }),
  deploy_process: setting("THREADMILL_DEPLOY_PROCESS", oneOf(["on", "off", "auto"]), {
    default: "auto",
    meaning:
      "Whether deployments can be built from source on this machine: `on`, `off` or `auto`. With `auto`, builds from source are rejected if there are several workspaces and the service cannot [isolate](control-plane.md#system-users) the deployments of different workspaces from each other. Revisions that are already built keep running.",
  }),
  deploy_user: setting("THREADMILL_DEPLOY_USER", readDeployUser, {
    default: USER_IDS,
    meaning:
      "System users that builds and instances run as, if the service runs as root. With a range of user IDs, each deployment gets its own ID from the range. With a user name, all deployments use that user.",
  }),
  deploy_builds: setting("THREADMILL_DEPLOY_BUILDS", integer(1, 64), {
    default: "1",
    meaning: "Maximum number of deployments that a process builds concurrently.",
  }),
  build_timeout_ms: setting("THREADMILL_DEPLOY_BUILD_TIMEOUT", duration(), {
    default: "15m",
    meaning: "Time limit for each command of a build.",
  }),
  deploy_deadline_ms: setting("THREADMILL_DEPLOY_DEADLINE", duration(), {
    default: "5m",
    meaning:
      "Time limit for a revision's instances to become ready. While the instances make progress, the limit is extended, up to four times this value.",
  }),
  deploy_drain_ms: setting("THREADMILL_DEPLOY_DRAIN", duration(), {
    default: "5m",
    meaning: "Grace period for open requests and streams to finish when their instance is replaced.",
  }),
  deploy_lease_ms: setting("THREADMILL_DEPLOY_LEASE", duration(), {
    default: "15s",
    meaning: "Duration of a process's lease on a deployment. Each lease is renewed after a third of this time.",
  }),
  orphan_ms: setting("THREADMILL_DEPLOY_ORPHAN_TIMEOUT", duration(1, 365 * 86_400_000), {
    default: "24h",
    meaning: "The instances of the process driver stop when no control plane has been running for this long.",
  }),
  deployment_log_retention_ms: setting("THREADMILL_DEPLOYMENT_LOG_RETENTION", duration(0, MAX_RETENTION_MS), {
    default: "7d",
    meaning: "Retention period of build logs and instance logs. At most 50,000 lines are kept per deployment.",
  }),
  deploy_git_protocols: setting("THREADMILL_DEPLOY_GIT_PROTOCOLS", list, {
    default: "https,ssh",
    meaning:
      "Comma-separated protocols that are allowed for git repositories: `https`, `http`, `ssh`, `file`. `ssh` requires a [key](control-plane.md#the-process-driver) for each deployment.",
  }),
  deploy_git_hosts: setting("THREADMILL_DEPLOY_GIT_HOSTS", list, {
    default: "",
    meaning:
      "Comma-separated git hosts that are allowed even if they are on a private network or use plain http. Plain http also requires `http` in `THREADMILL_DEPLOY_GIT_PROTOCOLS`.",
  }),
  image_driver: setting("THREADMILL_IMAGE_DRIVER", oneOf(["docker", "kubernetes"]), {
    default: "docker",
    meaning:
      "Where deployments from images run: `docker` or [`kubernetes`](control-plane.md#the-kubernetes-driver). Existing instances keep running where they are until they are replaced.",
  }),
  docker_socket: setting("THREADMILL_DOCKER_HOST", readDockerSocket, {
    default: "unix:///var/run/docker.sock",
    meaning: "Socket of the local Docker Engine that runs deployments from images.",
  }),
  docker_registries: setting("THREADMILL_DOCKER_REGISTRIES", readRegistries, {
    default: "",
    meaning:
      "Comma-separated image registries that are allowed: hosts such as `docker.io`, optionally with a path prefix, such as `ghcr.io/acme`. `localhost` allows local images whose names begin with `localhost/`.",
  }),
  docker_network: setting("THREADMILL_DOCKER_NETWORK", readNetwork, {
    shown_default: "a network created by the service",
    meaning:
      "Existing Docker network for the containers. By default, the service creates a network in which containers cannot reach each other. `host` uses the host's network. See [the Docker driver](control-plane.md#the-docker-driver).",
  }),
  kubeconfig: setting("THREADMILL_KUBECONFIG", text, {
    shown_default: "the service account of the service's pod",
    meaning: "Path of a kubeconfig file whose current context selects the cluster of the Kubernetes driver.",
  }),
  kubernetes_namespace: setting("THREADMILL_KUBERNETES_NAMESPACE", readObjectName, {
    shown_default: "the namespace of the kubeconfig's current context or of the service's pod",
    meaning: "Namespace in which the Kubernetes driver creates instances.",
  }),
  kubernetes_pull_secrets: setting("THREADMILL_KUBERNETES_PULL_SECRETS", readObjectNames, {
    default: "",
    meaning:
      "Comma-separated names of Secrets with the credentials to pull images. The Secrets must be in the namespace of the instances.",
  }),
  kubernetes_service_account: setting("THREADMILL_KUBERNETES_SERVICE_ACCOUNT", readObjectName, {
    shown_default: "no access to the Kubernetes API",
    meaning: "Service account of the instances. By default, instances have no token for the Kubernetes API.",
  }),
  rollout: setting(
    "THREADMILL_ROLLOUT",
    (value, name) => integer(0, Number.MAX_SAFE_INTEGER)(value, name) || undefined,
    {
      visibility: "internal",
      meaning:
        "ID of the rollout that this instance belongs to. The instance executes runs only after this rollout receives traffic.",
    },
  ),
  control_plane_file: setting("THREADMILL_CONTROL_PLANE_FILE", text, {
    visibility: "internal",
    meaning:
      "Heartbeat file of the control plane. An instance of the process driver stops when the file is deleted, or has not been touched for `THREADMILL_DEPLOY_ORPHAN_TIMEOUT`.",
  }),
};

function readDeployUser(value: string, name: string): { name: string } | { from: number; to: number } {
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(value) ?? [];
  if (from !== undefined && to !== undefined && Number(from) > 0 && Number(from) <= Number(to))
    return { from: Number(from), to: Number(to) };
  if (/^[a-z_][\w.-]*\$?$/i.test(value) && value !== "root") return { name: value };
  throw new ConfigError(
    `${name} must be a range of user IDs above 0, such as ${USER_IDS}, or the name of a user other than root, but is "${value}".`,
  );
}

/** The engine must be local: the driver mounts folders of this machine and publishes ports on its loopback address. */
function readDockerSocket(value: string, name: string): string {
  const [, socket] = /^unix:\/\/(\/.+)$/.exec(value) ?? [];
  if (socket !== undefined) return socket;
  throw new ConfigError(
    `${name} must be the unix:// URL of a Docker Engine socket on this machine, such as unix:///var/run/docker.sock, but is "${value}".`,
  );
}

function readNetwork(value: string, name: string): string {
  if (/^[A-Za-z0-9][\w.-]*$/.test(value) && value !== "none") return value;
  throw new ConfigError(
    `${name} must be the name of a Docker network, such as "bridge" or "host", but not "none". It is "${value}".`,
  );
}

function readRegistries(value: string, name: string): readonly string[] {
  const registries = list(value.toLowerCase(), name);
  const wrong = registries.find((entry) => !REGISTRY.test(entry));
  if (wrong === undefined) return registries;
  throw new ConfigError(
    `${name} must list registry hosts, optionally with a path, such as ghcr.io/acme, but contains "${wrong}".`,
  );
}

function readObjectName(value: string, name: string): string {
  if (/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(value) && value.length <= 253) return value;
  throw new ConfigError(`${name} must be the name of a Kubernetes object, such as my-agents, but is "${value}".`);
}

function readObjectNames(value: string, name: string): readonly string[] {
  return list(value, name).map((item) => readObjectName(item, name));
}
