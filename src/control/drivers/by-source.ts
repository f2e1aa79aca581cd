import type { DeployDriver, Drivers } from "../driver.ts";

/** What is built of source is run by the driver that builds it. */
export const bySource = (process: DeployDriver): Drivers => ({
  all: [process],
  driverFor: (source) => (source === "github" || source === "internal_source" ? process : undefined),
});
