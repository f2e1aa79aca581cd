import type { CatalogContent } from "../../agent-server/graph-catalog.ts";
import type { HostSetup, StartHost } from "../../agent-server/graph-hosts/host.ts";
import { startAhead, startInline, startInThread } from "../../agent-server/graph-hosts/start-host.ts";
import type { Config } from "../../config/config.ts";

export const hostStarter = ({ inline, host_memory_mb }: Config, memory_mb = host_memory_mb): StartHost =>
  inline ? startInline : startInThread(memory_mb);

export const projectSetup = ({ project_dir }: Config, { graphs, graph_env }: CatalogContent): HostSetup => ({
  graphs,
  env: graph_env,
  project_dir,
});

/** The setup of the hosts that execute runs and read threads. */
export const engineSetup = (config: Config, content: CatalogContent): HostSetup => ({
  ...projectSetup(config, content),
  embed: config.store.index?.embed,
});

/**
 * Starts the first graph host. This module imports little, so that the host loads the graphs while the serving thread loads the service:
 * the start takes 230 ms less on two cores.
 */
export const startFirstHost = (config: Config): StartHost =>
  config.inline ? startInline : startAhead(hostStarter(config), engineSetup(config, config));
