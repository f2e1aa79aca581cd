import { randomUUID } from "node:crypto";
import type { InstanceSpec } from "../../src/control-plane/drivers/driver.ts";

/** An instance of a new deployment with a key and without secrets or limits. */
export const instanceSpec = (more: Partial<InstanceSpec> & Pick<InstanceSpec, "artifact">): InstanceSpec => ({
  instance_id: randomUUID(),
  deployment_id: randomUUID(),
  revision_id: randomUUID(),
  tenant_id: randomUUID(),
  replica: 0,
  config_path: undefined,
  api_key: `key-${randomUUID()}`,
  database_password: "a-password-0123456789",
  env: {},
  resources: { cpu_limit: undefined, memory_limit_mb: undefined },
  log: () => undefined,
  ...more,
});
