import type { GraphCatalog } from "../agents/graph-catalog.ts";
import type { Config } from "../config.ts";
import { Engine } from "../engine/engine.ts";
import type { FindToken } from "../engine/token-requests.ts";
import { inlineHosts } from "../graphs/hosts/inline.ts";
import { threadHosts } from "../graphs/hosts/thread.ts";
import type { Log } from "../lib/log.ts";
import { isLoopback } from "../lib/loopback.ts";
import type { Database } from "../storage/database.ts";
import { tokenForRun } from "../vault/run-token.ts";
import type { Vault } from "../vault/vault.ts";

export function createEngine(
  config: Config,
  database: Database,
  catalog: GraphCatalog,
  vault: () => Promise<Vault>,
  log: Log,
): Engine {
  const startHost = config.inline ? inlineHosts : threadHosts(config.host_memory_mb);
  const setup = () => ({ graphs: catalog.graphs, env: catalog.env, project_dir: config.project_dir });
  const findToken: FindToken = async (user, request) =>
    tokenForRun((await vault()).flows, user, request, addressForBrowsers(config));
  return new Engine({ settings: config, database, startHost, setup, log, findToken });
}

/** What graphs send users back to, who have no request that could say how the service is called. */
const addressForBrowsers = ({ public_url, host, port, mount_prefix }: Config): string | undefined =>
  public_url ?? (isLoopback(host) && port !== 0 ? `http://localhost:${port}${mount_prefix}` : undefined);
