import type { InstanceSpec } from "./driver.ts";

/** The port of the agent server inside a container with its own network. */
export const CONTAINER_PORT = 8000;
/** The mount point of the data folder. */
export const DATA = "/threadmill-data";
/** The mount point of a temporary folder. */
export const TMPFS = "/tmp";

/** Limits of deployments that do not set their own. */
const DEFAULT_CPUS = 2;
const DEFAULT_MEMORY_MB = 2048;

interface Limits {
  cpus: number;
  memory_mb: number;
}

export const limitsFor = ({ resources }: Pick<InstanceSpec, "resources">): Limits => ({
  cpus: resources.cpu_limit ?? DEFAULT_CPUS,
  memory_mb: resources.memory_limit_mb ?? DEFAULT_MEMORY_MB,
});

interface ImageEnvironmentInput {
  spec: Pick<InstanceSpec, "env" | "api_key">;
  limits: Limits;
  /** If undefined, the instance uses the embedded database in the data folder. */
  database_url: string | undefined;
  /** If undefined, the home folder of the image's user. */
  home: string | undefined;
  host: string;
  port: number;
}

/** Returns the variables of the deployment and of the instance. None are inherited from the environment of the service. */
export const imageEnvironment = (input: ImageEnvironmentInput): Record<string, string> => ({
  ...(input.home !== undefined && { HOME: input.home }),
  ...input.spec.env,
  API_KEYS: input.spec.api_key,
  PORT: String(input.port),
  THREADMILL_HOST: input.host,
  THREADMILL_DATA: DATA,
  // During a rollout, instances of two revisions use the SQLite database at the same time.
  ...(input.database_url === undefined && { THREADMILL_SHARE_DATA: "1" }),
  // The variable is set even if empty, so that the instance does not use the DATABASE_URL of its graphs.
  THREADMILL_DATABASE_URL: input.database_url ?? "",
  THREADMILL_HOST_MEMORY: `${Math.max(64, input.limits.memory_mb)}MiB`,
  THREADMILL_HOSTS: String(Math.max(1, Math.floor(input.limits.cpus))),
});
