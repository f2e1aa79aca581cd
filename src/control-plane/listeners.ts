import type { VaultContext } from "../access/index.ts";
import type { Caller } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../platform/lib/times.ts";
import type { Listener, ListenerCreate, ListenerPatch, ListenersList } from "./contract/listeners.ts";
import type { ListenerConnections } from "./drivers/listener/connections.ts";
import { deleteListener, findListener, insertListener, listListeners, updateListener } from "./storage/listeners.ts";
import type { ListenerRow } from "./storage/schema.ts";

/** Listeners deploy to other clusters, through a connection that they open (drivers/listener). */
export class Listeners {
  readonly #database: VaultContext["database"];
  /** Undefined if this process does not deploy. */
  readonly #connections: ListenerConnections | undefined;

  constructor({ database }: Pick<VaultContext, "database">, connections: ListenerConnections | undefined) {
    this.#database = database;
    this.#connections = connections;
  }

  /**
   * Returns the connections to which that of the listener is added.
   *
   * @throws ApiError listener_not_found; unavailable if this process does not deploy
   */
  async connectionsFor(caller: Caller, listener_id: string): Promise<ListenerConnections> {
    await this.get(caller, listener_id);
    if (this.#connections) return this.#connections;
    throw new ApiError("unavailable", {
      reason: "This process does not deploy (THREADMILL_RECONCILES=0): connect the listener to the process that does.",
    });
  }

  async list({ tenant_id }: Caller, { limit, offset }: { limit: number; offset: number }): Promise<ListenersList> {
    const rows = await listListeners(this.#database.read, { tenant_id, limit, offset });
    return { resources: rows.map(toListener), offset: offset + rows.length };
  }

  /** @throws ApiError listener_exists */
  async create({ tenant_id }: Caller, given: ListenerCreate): Promise<Listener> {
    const { compute_type, compute_id, version = null } = given;
    const compute_config = serialize(given.compute_config);
    const listener = { listener_id: newId(), tenant_id, version, compute_type, compute_id, compute_config };
    const row = await this.#database.write((tx) => insertListener(tx, listener));
    if (!row) throw new ApiError("listener_exists", { workspace_id: tenant_id, compute_id });
    return toListener(row);
  }

  /** @throws ApiError listener_not_found */
  async get({ tenant_id }: Caller, listener_id: string): Promise<Listener> {
    return found(listener_id, await findListener(this.#database.read, tenant_id, listener_id));
  }

  /** @throws ApiError listener_not_found */
  async patch({ tenant_id }: Caller, listener_id: string, patch: ListenerPatch): Promise<Listener> {
    const changes = {
      ...(patch.version !== undefined && { version: patch.version }),
      ...(patch.compute_config && { compute_config: serialize(patch.compute_config) }),
    };
    const row = await this.#database.write((tx) => updateListener(tx, { tenant_id, listener_id }, changes));
    return found(listener_id, row);
  }

  /** @throws ApiError listener_not_found */
  async delete({ tenant_id }: Caller, listener_id: string): Promise<void> {
    const count = await this.#database.write((tx) => deleteListener(tx, tenant_id, listener_id));
    if (count === 0) throw new ApiError("listener_not_found", { listener_id });
    this.#connections?.close(listener_id);
  }
}

function found(listener_id: string, row: ListenerRow | undefined): Listener {
  if (!row) throw new ApiError("listener_not_found", { listener_id });
  return toListener(row);
}

const serialize = ({ k8s_namespaces = undefined }: ListenerCreate["compute_config"]): string =>
  JSON.stringify({ k8s_namespaces: k8s_namespaces ?? null });

const toListener = (row: ListenerRow): Listener => ({
  id: row.listener_id,
  version: row.version,
  compute_type: row.compute_type,
  compute_id: row.compute_id,
  compute_config: JSON.parse(row.compute_config),
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
});
