import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isUuid, newId } from "../../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { type AgentContext, askGraph } from "../context.ts";
import type { AssistantCreate, AssistantFilter, AssistantPatch, AssistantSearch } from "../contract/assistants.ts";
import type { Assistant, GraphSchemas as AssistantSchemas, AssistantVersion } from "../contract/records.ts";
import { cancelLocked, type PendingCancel } from "../engine/index.ts";
import type { GraphSchemas } from "../graph-hosts/host.ts";
import type { TypeSchemas } from "../graph-hosts/type-schemas/cache.ts";
import { mergedMetadata } from "../metadata.ts";
import {
  countAssistants,
  deleteAssistant,
  findAssistant,
  findVersion,
  insertAssistant,
  insertNextVersion,
  listVersions,
  lockAssistant,
  searchAssistants,
  setAssistant,
} from "../storage/assistants.ts";
import { listActiveRunsOfAssistant } from "../storage/runs.ts";
import type { AssistantRow, AssistantVersionRow } from "../storage/schema.ts";
import { listThreadsOfAssistant, lockThread } from "../storage/threads.ts";
import { removeThread } from "../threads/threads.ts";
import { defaultAssistantId } from "./default-assistants.ts";

/** Assistants: graphs with a configuration and a name, in versions. */
export class Assistants {
  readonly #context: AgentContext;

  constructor(context: AgentContext) {
    this.#context = context;
  }

  async create({ tenant_id }: Caller, body: AssistantCreate): Promise<Assistant> {
    const { database, catalog } = this.#context;
    catalog.require(body.graph_id);
    const assistant_id = body.assistant_id ?? newId();
    const row = await database.write(async (tx) => {
      const { graph_id, name, description } = body;
      const created = await insertAssistant(tx, {
        assistant_id,
        tenant_id,
        graph_id,
        name,
        description,
        ...asText(body),
      });
      if (created) return created;
      const existing = body.if_exists === "do_nothing" ? await findAssistant(tx, tenant_id, assistant_id) : undefined;
      if (!existing) throw new ApiError("assistant_exists");
      return existing;
    });
    return toAssistant(row);
  }

  async get(caller: Caller, assistant_id: string): Promise<Assistant> {
    return toAssistant(await requireAssistant(this.#context.database.read, caller, assistant_id));
  }

  /** Every call creates a version, even without a change: clients rely on it. */
  async patch(caller: Caller, assistant_id: string, body: AssistantPatch): Promise<Assistant> {
    const { database, catalog } = this.#context;
    if (body.graph_id !== undefined) catalog.require(body.graph_id);
    const row = await database.write(async (tx) => {
      const current = await lockAssistant(tx, caller.tenant_id, idOf(assistant_id));
      if (!current) throw new ApiError("assistant_not_found");
      const metadata = mergedMetadata(current.metadata, body.metadata);
      return insertNextVersion(tx, {
        ...current,
        metadata,
        graph_id: body.graph_id ?? current.graph_id,
        name: body.name ?? current.name,
        description: body.description ?? current.description,
        config: body.config ? JSON.stringify(body.config) : current.config,
        context: body.context ? JSON.stringify(body.context) : current.context,
      });
    });
    return toAssistant(row);
  }

  /** Deletes an assistant with its versions and stops its runs; with `delete_threads`, also deletes threads whose last assistant it is. */
  async delete(caller: Caller, assistant_id: string, { delete_threads }: { delete_threads: boolean }): Promise<void> {
    const { database, engine } = this.#context;
    // Reads every thread of the workspace, so it runs before the transaction, which checks each thread again.
    const found = delete_threads
      ? await listThreadsOfAssistant(database.search, caller.tenant_id, idOf(assistant_id))
      : [];
    const cancels = await database.write(async (tx) => {
      const assistant = await lockAssistant(tx, caller.tenant_id, idOf(assistant_id));
      if (!assistant) throw new ApiError("assistant_not_found");
      if (this.#isDefault(assistant)) throw new ApiError("assistant_is_default", { assistant_id });
      const stopped: PendingCancel[] = [];
      const active = await listActiveRunsOfAssistant(tx, assistant);
      for (const run of active) {
        await lockThread(tx, caller.tenant_id, run.thread_id);
        stopped.push(...(await cancelLocked(tx, run, { action: "interrupt", reason: null })));
      }
      const threads = delete_threads ? [...found, ...active.map(({ thread_id }) => thread_id)] : [];
      for (const thread_id of new Set(threads)) {
        const thread = await lockThread(tx, caller.tenant_id, thread_id);
        if (thread && !thread.hidden && JSON.parse(thread.metadata).assistant_id === assistant.assistant_id)
          stopped.push(...(await removeThread(tx, thread)));
      }
      await deleteAssistant(tx, assistant);
      return stopped;
    });
    engine.publishCancels(cancels);
  }

  #isDefault(assistant: AssistantRow): boolean {
    return (
      this.#context.catalog.has(assistant.graph_id) && defaultAssistantId(assistant.graph_id) === assistant.assistant_id
    );
  }

  async search({ tenant_id }: Caller, { metadata, graph_id, name, ...paging }: AssistantSearch): Promise<Assistant[]> {
    const rows = await searchAssistants(this.#context.database.search, tenant_id, { metadata, graph_id, name }, paging);
    return rows.map(toAssistant);
  }

  count({ tenant_id }: Caller, filter: AssistantFilter): Promise<number> {
    return countAssistants(this.#context.database.search, tenant_id, filter);
  }

  async versions(
    caller: Caller,
    assistant_id: string,
    filter: { metadata?: object; limit: number; offset: number },
  ): Promise<AssistantVersion[]> {
    const { read, search } = this.#context.database;
    const assistant = await requireAssistant(read, caller, assistant_id);
    return (await listVersions(search, assistant, filter)).map(toVersion);
  }

  /** Makes a version the current one, with all its fields. */
  async setLatest(caller: Caller, assistant_id: string, version: number): Promise<Assistant> {
    const row = await this.#context.database.write(async (tx) => {
      const assistant = await lockAssistant(tx, caller.tenant_id, idOf(assistant_id));
      if (!assistant) throw new ApiError("assistant_not_found");
      const found = await findVersion(tx, assistant, version);
      if (!found) throw new ApiError("version_not_found", { assistant_id, version });
      return setAssistant(tx, found);
    });
    return toAssistant(row);
  }

  /** The graph's nodes and edges, as JSON text. */
  async drawing(caller: Caller, assistant_id: string, xray: boolean | number): Promise<string> {
    const { graph_id, config, context } = await this.#find(caller, assistant_id);
    return askGraph(this.#context, { kind: "drawing", xray, graph: { graph_id, config, context } });
  }

  /**
   * The JSON schemas of the assistant's graph: those that the graph declares, else those of its TypeScript types, else the names of its
   * keys. The first read of a graph's types takes seconds; the result is cached until the source changes.
   */
  async schemas(caller: Caller, assistant_id: string): Promise<AssistantSchemas> {
    const { graph_id, config, context } = await this.#find(caller, assistant_id);
    const declared = await askGraph(this.#context, { kind: "schemas", graph: { graph_id, config, context } });
    const isWhole = Object.values(declared).every(({ is_whole }) => is_whole);
    const typed = isWhole ? undefined : await this.#context.type_schemas.read(this.#context.catalog.require(graph_id));
    return { graph_id, ...schemasOf(declared, typed) };
  }

  /** Schemas of subgraphs by namespace: those that they declare, else the names of their keys. */
  async subgraphs(
    caller: Caller,
    assistant_id: string,
    namespace: string | undefined,
    recurse: boolean,
  ): Promise<Record<string, SchemaFields>> {
    const { graph_id, config, context } = await this.#find(caller, assistant_id);
    const graph = { graph_id, config, context };
    const found = await askGraph(this.#context, { kind: "subgraphs", namespace, recurse, graph });
    return Object.fromEntries(Object.entries(found).map(([name, schemas]) => [name, schemasOf(schemas, undefined)]));
  }

  async #find(caller: Caller, assistant_id: string): Promise<Assistant> {
    return toAssistant(await requireAssistant(this.#context.database.read, caller, assistant_id));
  }
}

type SchemaFields = Omit<AssistantSchemas, "graph_id">;

function schemasOf(declared: GraphSchemas, typed: TypeSchemas | undefined): SchemaFields {
  const pick = (part: keyof GraphSchemas) =>
    declared[part].is_whole ? declared[part].schema : (typed?.[part] ?? declared[part].schema);
  return {
    input_schema: pick("input"),
    output_schema: pick("output"),
    state_schema: pick("state"),
    config_schema: pick("config"),
    // JavaScript graphs declare one schema for both.
    context_schema: pick("config"),
  };
}

/** A graph id stands for the graph's default assistant. */
const idOf = (assistant_id: string): string =>
  isUuid(assistant_id) ? assistant_id.toLowerCase() : defaultAssistantId(assistant_id);

/**
 * The assistant with this id, or the default assistant of the graph with this id.
 *
 * @throws ApiError assistant_not_found
 */
async function requireAssistant(tx: Tx, caller: Caller, assistant_id: string): Promise<AssistantRow> {
  const found = await findAssistant(tx, caller.tenant_id, idOf(assistant_id));
  if (!found) throw new ApiError("assistant_not_found");
  return found;
}

/** As {@link requireAssistant}, but undefined if there is none. */
export const findAssistantOrGraph = (tx: Tx, caller: Caller, assistant_id: string): Promise<AssistantRow | undefined> =>
  findAssistant(tx, caller.tenant_id, idOf(assistant_id));

const asText = ({ config, context, metadata }: Pick<AssistantCreate, "config" | "context" | "metadata">) => ({
  config: JSON.stringify(config),
  context: JSON.stringify(context),
  metadata: JSON.stringify(metadata),
});

function toVersion({
  tenant_id: _,
  config,
  context,
  metadata,
  created_at,
  ...row
}: AssistantVersionRow): AssistantVersion {
  return {
    ...row,
    config: JSON.parse(config),
    context: JSON.parse(context),
    metadata: JSON.parse(metadata),
    created_at: isoOfMilliseconds(created_at),
  };
}

export function toAssistant({ updated_at, ...row }: AssistantRow): Assistant {
  return { ...toVersion(row), updated_at: isoOfMilliseconds(updated_at) };
}
