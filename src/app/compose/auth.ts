import { CustomAuth } from "../../agent-server/auth/custom-auth.ts";
import type { GraphCatalog } from "../../agent-server/graph-catalog.ts";
import { QueryHost } from "../../agent-server/graph-hosts/query-host.ts";
import { startInThread } from "../../agent-server/graph-hosts/start-host.ts";
import type { Config } from "../../config/config.ts";
import type { Log } from "../../platform/lib/log.ts";

/** Heap limit of the handlers' thread: enough for keys and user directories, because handlers allocate little. */
const MEMORY_MB = 256;

/** Returns undefined without `auth.path`. The handlers always run in a thread of their own, because every request waits for them. */
export function createCustomAuth(config: Config, catalog: GraphCatalog, log: Log): CustomAuth | undefined {
  const { auth, project_dir, host_memory_mb, public_url } = config;
  if (!auth) return undefined;
  const host = new QueryHost({
    startHost: startInThread(Math.min(host_memory_mb, MEMORY_MB)),
    setup: () => ({ graphs: [], env: catalog.content.graph_env, project_dir, auth: auth.module }),
    onRequest: () => Promise.reject(new Error("Handlers of the authentication module cannot read threads.")),
    timeout_ms: config.auth_timeout_ms,
    ping_timeout_ms: config.host_silent_ms,
    log,
  });
  return new CustomAuth({ host, cache: auth.cache, public_url, catalog, log });
}
