import { z } from "@hono/zod-openapi";
import { jsonObject, optional } from "../../platform/contract/fields.ts";
import { laxInt, laxNumber } from "../../platform/contract/lax-fields.ts";

const scale = optional(laxInt({ ge: 0 }));
const megabytes = optional(laxInt({ ge: 1 }));
const cpu = optional(laxNumber({ ge: 0.1, le: 8 })).openapi({ description: "Cores." });
const cpuLimit = optional(laxNumber({ ge: 0.1, le: 16 })).openapi({ description: "Cores; twice `cpu` by default." });

const stringMap = optional(z.record(z.string(), z.string()));
const named = z.looseObject({ name: z.string() });

/** As Kubernetes writes one; what else it says is kept. */
const container = z.looseObject({ name: z.string(), image: z.string() });

/** What a deployment may use of the machine. All of it may be missing; what is not known is ignored. */
export const ResourceSpec = z
  .object({
    min_scale: scale,
    max_scale: scale,
    cpu,
    cpu_limit: cpuLimit,
    memory_mb: megabytes,
    memory_limit_mb: megabytes,
    queue_min_scale: scale,
    queue_max_scale: scale,
    queue_cpu: cpu,
    queue_cpu_limit: cpuLimit,
    queue_memory_mb: megabytes,
    queue_memory_limit_mb: megabytes,
    redis_cpu: cpu,
    redis_cpu_limit: cpuLimit,
    redis_memory_mb: megabytes,
    redis_memory_limit_mb: megabytes,
    db_cpu: cpu,
    db_cpu_limit: cpuLimit,
    db_memory_mb: megabytes,
    db_memory_limit_mb: megabytes,
    db_storage_gi: megabytes,
    db_max_connections: megabytes,
    labels: stringMap,
    annotations: stringMap,
    service_account_name: optional(z.string()),
    image_pull_secrets: optional(z.array(named)),
    volumes: optional(z.array(named)),
    volume_mounts: optional(z.array(jsonObject)),
    init_containers: optional(z.array(container)),
    sidecars: optional(z.array(container)),
  })
  .openapi("ResourceSpec");
export type ResourceSpec = z.output<typeof ResourceSpec>;
