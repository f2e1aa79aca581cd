import { tokenForRun } from "../../access/tokens/run-token.ts";
import type { Vault } from "../../access/vault.ts";
import { Engine } from "../../agent-server/engine/engine.ts";
import type { FetchAs } from "../../agent-server/engine/run-requests.ts";
import type { FindToken } from "../../agent-server/engine/token-requests.ts";
import type { GraphCatalog } from "../../agent-server/graph-catalog.ts";
import { inlineHosts } from "../../agent-server/graph-hosts/hosts/inline.ts";
import { threadHosts } from "../../agent-server/graph-hosts/hosts/thread.ts";
import type { Config } from "../../config/config.ts";
import { type Caller, mayUse, type Scope } from "../../platform/contract/caller.ts";
import type { Database } from "../../platform/database/database.ts";
import type { App } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { isLoopback } from "../../platform/lib/loopback.ts";

/**
 * The limit of the host that reads states. With a limit of 2 GB V8 lets a heap grow to four times what is alive in it before it
 * collects, with this one to 1.6 times: a history of 22 states of 10 MB takes 230 MB less.
 */
const READER_MEMORY_MB = 512;

export function createEngine(
  config: Config,
  database: Database,
  catalog: GraphCatalog,
  { vault, fetchAs }: { vault: () => Promise<Vault>; fetchAs: FetchAs },
  log: Log,
): Engine {
  const hosts = (memory_mb: number) => (config.inline ? inlineHosts : threadHosts(memory_mb));
  const startHost = hosts(config.host_memory_mb);
  const startReader = hosts(Math.min(config.host_memory_mb, READER_MEMORY_MB));
  const setup = () => ({ graphs: catalog.graphs, env: catalog.content.graph_env, project_dir: config.project_dir });
  const findToken: FindToken = async (user, request) =>
    tokenForRun((await vault()).flows, user, request, addressForBrowsers(config));
  return new Engine({ settings: config, database, startHost, startReader, setup, log, findToken, fetchAs });
}

/**
 * Requests of graphs to this server, in the name of their run's user. They reach the agent server and nothing else: who writes a graph
 * must not manage keys and deployments by way of an operator who runs it.
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

/** What graphs send users back to, who have no request that could say how the service is called. */
const addressForBrowsers = ({ public_url, host, port, mount_prefix }: Config): string | undefined =>
  public_url ?? (isLoopback(host) && port !== 0 ? `http://localhost:${port}${mount_prefix}` : undefined);
