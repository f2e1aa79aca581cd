import type { Vault } from "../../access/vault.ts";
import { Engine, type FetchAs, type FindToken } from "../../agent-server/engine/index.ts";
import type { GraphCatalog } from "../../agent-server/graph-catalog.ts";
import { startInline, startInThread } from "../../agent-server/graph-hosts/start-host.ts";
import type { Config } from "../../config/config.ts";
import { mayUse, type Scope } from "../../platform/contract/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/safe-fetch/addresses.ts";

/** With a heap limit of 2 GB, V8 collects the host that reads states less often: a history of 22 states of 10 MB needs 230 MB more. */
const READER_MEMORY_MB = 512;

export function createEngine(
  config: Config,
  database: Database,
  catalog: GraphCatalog,
  { vault, fetchAs }: { vault: () => Promise<Vault>; fetchAs: FetchAs },
  log: Log,
): Engine {
  const hosts = (memory_mb: number) => (config.inline ? startInline : startInThread(memory_mb));
  const startHost = hosts(config.host_memory_mb);
  const startReader = hosts(Math.min(config.host_memory_mb, READER_MEMORY_MB));
  const setup = () => ({ graphs: catalog.graphs, env: catalog.content.graph_env, project_dir: config.project_dir });
  const findToken: FindToken = async (user, request) =>
    (await vault()).flows.tokenForRun(user, request, browserUrl(config));
  return new Engine({ settings: config, database, startHost, startReader, setup, log, findToken, fetchAs });
}

/**
 * Sends requests of graphs to this server as the user of the run. Only the scope `agents` is kept: the author of a graph must not access
 * keys and deployments through an administrator who runs it.
 */
export const fetchAsUser =
  (served: Promise<App>, prefix: string): FetchAs =>
  async ({ tenant_id, user_id, ...user }, request) => {
    const scopes: Scope[] = mayUse({ scopes: user.scopes as Scope[] }, "agents") ? ["agents"] : [];
    const url = new URL(request.url);
    url.pathname = prefix + url.pathname;
    return (await served).fetch(new Request(url, request), { caller: { tenant_id, user_id, scopes } });
  };

/** The address that graphs redirect browsers to. Graphs have no request with a Host header. */
const browserUrl = ({ public_url, host, port, mount_prefix }: Config): string | undefined =>
  public_url ?? (isLoopback(host) && port !== 0 ? `http://localhost:${port}${mount_prefix}` : undefined);
