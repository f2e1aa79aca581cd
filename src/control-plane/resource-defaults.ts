import { ApiError } from "../platform/errors.ts";
import type { ResourceSpec } from "./contract/resource-spec.ts";

/** What is limited by itself. */
const PARTS = ["", "queue_", "redis_", "db_"] as const;

/**
 * A spec with the limits that it implies: twice the CPU, rounded to one decimal, and twice the memory, of Redis as much as it asks
 * for; a queue that says nothing is as large as the API.
 *
 * @throws ApiError bad_source when a limit is lower than what it limits
 */
export function withDefaults(given: ResourceSpec): ResourceSpec {
  const spec: Record<string, unknown> = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  for (const part of PARTS) {
    const [cpu, memory] = [spec[`${part}cpu`], spec[`${part}memory_mb`]];
    if (typeof cpu === "number") spec[`${part}cpu_limit`] ??= Math.round(cpu * 20) / 10;
    if (typeof memory === "number") spec[`${part}memory_limit_mb`] ??= part === "redis_" ? memory : memory * 2;
  }
  for (const name of ["min_scale", "max_scale", "cpu", "cpu_limit", "memory_mb", "memory_limit_mb"])
    if (spec[name] !== undefined) spec[`queue_${name}`] ??= spec[name];
  refuseCrossed(spec);
  return spec as ResourceSpec;
}

function refuseCrossed(spec: Record<string, unknown>): void {
  const pairs = PARTS.flatMap((part) => [
    [`${part}cpu`, `${part}cpu_limit`],
    [`${part}memory_mb`, `${part}memory_limit_mb`],
    [`${part}min_scale`, `${part}max_scale`],
  ]) as [string, string][];
  for (const [least, most] of pairs)
    if (Number(spec[least]) > Number(spec[most]))
      throw new ApiError("bad_source", { reason: `resource_spec.${most} is lower than resource_spec.${least}.` });
}
