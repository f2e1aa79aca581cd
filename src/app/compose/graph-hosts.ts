import { CustomEncryption } from "../../agent-server/encryption.ts";
import type { CatalogContent, GraphCatalog } from "../../agent-server/graph-catalog.ts";
import type { HostSetup, StartHost } from "../../agent-server/graph-hosts/host.ts";
import type { HostsByLanguage } from "../../agent-server/graph-hosts/language-hosts.ts";
import { setupOf } from "../../agent-server/graph-hosts/languages.ts";
import { PythonProcesses } from "../../agent-server/graph-hosts/python/process-host.ts";
import { QueryHost } from "../../agent-server/graph-hosts/query-host.ts";
import { startAhead, startInline, startInProcess, startInThread } from "../../agent-server/graph-hosts/start-host.ts";
import type { Config } from "../../config/config.ts";
import type { Log } from "../../platform/lib/log.ts";

/** With a heap limit of 2 GB, V8 collects garbage less often: a history of 22 states of 10 MB needs 230 MB more. */
const READER_MEMORY_MB = 512;

/** On a busy machine, a Python process takes seconds to import its packages. JavaScript hosts load modules with the first query. */
export const START_TIMEOUT_MS = { js: 0, python: 120_000 };

export const hostStarter = ({ inline, host_memory_mb }: Config, memory_mb = host_memory_mb): StartHost =>
  inline ? startInline : startInThread(memory_mb);

export const projectSetup = (
  { project_dir, python_project }: Config,
  { graphs, graph_env }: CatalogContent,
): HostSetup => ({
  graphs,
  env: graph_env,
  project_dir,
  python: python_project,
});

/** The setup of the hosts that execute runs and read threads. */
export const engineSetup = (config: Config, content: CatalogContent): HostSetup => ({
  ...projectSetup(config, content),
  embed: config.store.index?.embed,
});

/** @param startHost starts the JavaScript hosts that execute runs */
export function languageHosts(config: Config, startHost: StartHost, python: PythonProcesses): HostsByLanguage {
  const memory_mb = config.host_memory_mb;
  const startPython = python.starter({ jobs: config.jobs_per_worker, memory_mb, role: "runs" });
  return {
    js: {
      startHost,
      startIsolated: config.inline ? startInline : startInProcess(memory_mb),
      startReader: hostStarter(config, Math.min(memory_mb, READER_MEMORY_MB)),
      hosts: config.hosts,
    },
    python: {
      startHost: startPython,
      startIsolated: startPython,
      startReader: python.starter({ jobs: config.jobs_per_worker, memory_mb, role: "queries" }),
      hosts: config.python_hosts,
    },
  };
}

export const pythonProcesses = ({ python, python_spare }: Config): PythonProcesses =>
  new PythonProcesses({ python, has_spare: python_spare });

/** Returns undefined without `encryption.path`. The handlers run in a process of their own, because every request waits for them. */
export function createEncryption(
  config: Config,
  catalog: GraphCatalog,
  python: PythonProcesses,
  log: Log,
): CustomEncryption | undefined {
  const {
    encryption,
    auth_timeout_ms: timeout_ms,
    host_silent_ms: ping_timeout_ms,
    host_memory_mb: memory_mb,
  } = config;
  if (!encryption) return undefined;
  const host = new QueryHost({
    startHost: python.starter({ role: "auth", jobs: config.jobs_per_worker, memory_mb }),
    setup: () => ({ ...projectSetup(config, catalog.content), graphs: [], encryption }),
    onRequest: () =>
      Promise.reject(new Error("Handlers of the encryption module cannot send requests to the service.")),
    timeout_ms,
    ping_timeout_ms,
    start_timeout_ms: START_TIMEOUT_MS.python,
    log,
  });
  return new CustomEncryption({ host, log });
}

/**
 * Starts the first graph host. This module imports little, so that the host loads the graphs while the serving thread loads the service:
 * the start takes 230 ms less on two cores.
 */
export function startFirstHost(config: Config): StartHost {
  if (config.inline || config.role === "api" || config.graphs.every(({ language }) => language !== "js"))
    return hostStarter(config);
  return startAhead(hostStarter(config), setupOf("js", engineSetup(config, config)));
}
