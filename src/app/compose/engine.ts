import type { Vault } from "../../access/vault.ts";
import { Engine, type FetchAs, type FindToken } from "../../agent-server/engine/index.ts";
import type { GraphCatalog } from "../../agent-server/graph-catalog.ts";
import { startInline, startInThread } from "../../agent-server/graph-hosts/start-host.ts";
import type { Config } from "../../config/config.ts";
import { type Caller, mayUse, type Scope } from "../../platform/contract/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/safe-fetch/addresses.ts";

/**
 * Heap limit of the host that reads states. With a limit of 2 GB, V8 lets the heap grow to four times its live size before a collection,
 * with this limit to 1.6 times: a history of 22 states of 10 MB needs 230 MB less.
 */
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
 * Sends requests of graphs to this server with the identity of the run's user, limited to the scope of the agent server: the author of a
 * graph must not get access to keys and deployments through an administrator who runs it.
 */
export const fetchAsUser =
  (served: Promise<App>, prefix: string): FetchAs =>
  async ({ tenant_id, user_id, scopes }, request) => {
    const caller: Caller = {
      tenant_id,
      user_id,
      scopes: mayUse({ scopes: scopes as Scope[] }, "agents") ? ["agents"] : [],
    };
    const url = new URL(request.url);
    url.pathname = prefix + url.pathname;
    return (await served).fetch(new Request(url, request), { caller });
  };

/** The address that graphs redirect browsers to. A graph has no request whose Host header could provide it. */
const browserUrl = ({ public_url, host, port, mount_prefix }: Config): string | undefined =>
  public_url ?? (isLoopback(host) && port !== 0 ? `http://localhost:${port}${mount_prefix}` : undefined);
