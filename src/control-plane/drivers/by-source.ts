import type { DeployDriver, Drivers } from "./driver.ts";

/** What is built of source is run by the driver that builds it; images are run as containers. */
export const bySource = ({ process, docker }: { process: DeployDriver; docker: DeployDriver }): Drivers => ({
  all: [process, docker],
  driverFor(source) {
    if (source === "github" || source === "internal_source") return process;
    return source === "external_docker" || source === "internal_docker" ? docker : undefined;
  },
});
