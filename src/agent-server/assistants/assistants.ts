import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { isUuid, newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { filterOf } from "../auth/grants.ts";
import { type AgentContext, queryGraph } from "../context.ts";
import type {
  AssistantCreate,
  AssistantFilter,
  AssistantPatch,
  AssistantSearch,
  VersionSearch,
} from "../contract/assistants.ts";
import type { Assistant, GraphSchemas as AssistantSchemas, AssistantVersion } from "../contract/records.ts";
import { cancelLocked, type PendingCancel } from "../engine/index.ts";
import type { GraphInUse, GraphSchemas } from "../graph-hosts/host.ts";
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
import { listThreadIds } from "../storage/thread-search.ts";
import { lockThread, lockThreadId } from "../storage/threads.ts";
import { removeThread } from "../threads/threads.ts";
import { defaultAssistantId } from "./default-assistants.ts";

export class Assistants {
  readonly #context: AgentContext;

  constructor(context: AgentContext) {
    this.#context = context;
  }

  async create(caller: Caller, body: AssistantCreate): Promise<Assistant> {
    const { database, catalog } = this.#context;
    const { tenant_id } = caller;
    catalog.require(body.graph_id);
    const assistant_id = body.assistant_id ?? newId();
    const { graph_id, name, description } = body;
    const config = JSON.stringify(body.config);
    const context = JSON.stringify(body.context);
    const metadata = JSON.stringify(body.metadata);
    const fields = { assistant_id, tenant_id, graph_id, name, description, config, context, metadata };
    const row = await database.write(async (tx) => {
      const created = await insertAssistant(tx, fields);
      if (created) return created;
      const find = () => findAssistant(tx, tenant_id, assistant_id, filterOf(caller, "assistants"));
      const existing = body.if_exists === "do_nothing" ? await find() : undefined;
      if (!existing) throw new ApiError("assistant_exists");
      return existing;
    });
    return toAssistant(row);
  }

  async get(caller: Caller, assistant_id: string): Promise<Assistant> {
    return toAssistant(await requireAssistant(this.#context.database.read, caller, assistant_id));
  }

  /** Every call creates a version, even if nothing changed, because clients rely on a new version. */
  async patch(caller: Caller, assistant_id: string, body: AssistantPatch): Promise<Assistant> {
    const { database, catalog } = this.#context;
    if (body.graph_id !== undefined) catalog.require(body.graph_id);
    const row = await database.write(async (tx) => {
      const current = await requireAssistant(tx, caller, assistant_id, lockAssistant);
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

  /**
   * Deletes an assistant with its versions, stops its runs and, with `delete_threads`, deletes the threads whose
   * `metadata.assistant_id` is its ID.
   */
  async delete(caller: Caller, assistant_id: string, { delete_threads }: { delete_threads: boolean }): Promise<void> {
    const { database, engine } = this.#context;
    // This query reads every thread of the workspace, so it runs before the transaction, which checks each thread again.
    const access = delete_threads ? filterOf(caller, "threads") : undefined;
    const filter = { metadata: { assistant_id: assistantIdOf(assistant_id) }, access };
    const found = delete_threads ? await listThreadIds(database.search, caller.tenant_id, filter) : [];
    const cancels = await database.write(async (tx) => {
      const assistant = await requireAssistant(tx, caller, assistant_id, lockAssistant);
      if (this.#isDefault(assistant)) throw new ApiError("assistant_is_default", { assistant_id });
      const stopped: PendingCancel[] = [];
      const active = await listActiveRunsOfAssistant(tx, assistant);
      for (const run of active) {
        await lockThreadId(tx, run);
        stopped.push(...(await cancelLocked(tx, run, { action: "interrupt", reason: null })));
      }
      const threads = delete_threads ? [...found, ...active.map(({ thread_id }) => thread_id)] : [];
      for (const thread_id of new Set(threads)) {
        const thread = await lockThread(tx, caller.tenant_id, thread_id, access);
        if (thread && !thread.hidden && JSON.parse(thread.metadata).assistant_id === assistant.assistant_id)
          stopped.push(...(await removeThread(tx, thread)));
      }
      await deleteAssistant(tx, assistant);
      return stopped;
    });
    engine.publishCancels(cancels);
    engine.deleteTraces();
  }

  #isDefault(assistant: AssistantRow): boolean {
    return (
      this.#context.catalog.has(assistant.graph_id) && defaultAssistantId(assistant.graph_id) === assistant.assistant_id
    );
  }

  async search(caller: Caller, { metadata, graph_id, name, ...paging }: AssistantSearch): Promise<Assistant[]> {
    const filter = { metadata, graph_id, name, access: filterOf(caller, "assistants") };
    const rows = await searchAssistants(this.#context.database.search, caller.tenant_id, filter, paging);
    return rows.map(toAssistant);
  }

  count(caller: Caller, filter: AssistantFilter): Promise<number> {
    const access = filterOf(caller, "assistants");
    return countAssistants(this.#context.database.search, caller.tenant_id, { ...filter, access });
  }

  async versions(caller: Caller, assistant_id: string, filter: VersionSearch): Promise<AssistantVersion[]> {
    const { read, search } = this.#context.database;
    const assistant = await requireAssistant(read, caller, assistant_id);
    return (await listVersions(search, assistant, filter)).map(toVersion);
  }

  async setLatest(caller: Caller, assistant_id: string, version: number): Promise<Assistant> {
    const row = await this.#context.database.write(async (tx) => {
      const assistant = await requireAssistant(tx, caller, assistant_id, lockAssistant);
      const found = await findVersion(tx, assistant, version);
      if (!found) throw new ApiError("version_not_found", { assistant_id, version });
      return setAssistant(tx, found);
    });
    return toAssistant(row);
  }

  /** Returns the nodes and edges of the assistant's graph as JSON text. */
  async drawing(caller: Caller, assistant_id: string, xray: boolean | number): Promise<string> {
    return queryGraph(this.#context, { kind: "drawing", xray, graph: await this.#graphOf(caller, assistant_id) });
  }

  /**
   * Returns JSON Schemas of the assistant's graph: as declared, else derived from TypeScript types, else with key names only. Deriving
   * schemas takes seconds; the result is cached until the source changes.
   */
  async schemas(caller: Caller, assistant_id: string): Promise<AssistantSchemas> {
    const graph = await this.#graphOf(caller, assistant_id);
    const { graph_id } = graph;
    const declared = await queryGraph(this.#context, { kind: "schemas", graph });
    const isWhole = Object.values(declared).every(({ is_whole }) => is_whole);
    const found = this.#context.catalog.require(graph_id);
    const typed = isWhole || found.language !== "js" ? undefined : await this.#context.type_schemas.read(found);
    return { graph_id, ...schemasOf(declared, typed) };
  }

  /** Returns the keys of a graph's input. Unlike the other parts of its schema, they are always known without its source. */
  async inputKeys(graph: GraphInUse): Promise<string[]> {
    const { input } = await queryGraph(this.#context, { kind: "schemas", graph });
    return Object.keys((input.schema?.properties as JsonObject | undefined) ?? {});
  }

  /** Returns the schemas of the subgraphs, keyed by namespace. A schema that is not declared contains only the names of the keys. */
  async subgraphs(
    caller: Caller,
    assistant_id: string,
    namespace: string | undefined,
    recurse: boolean,
  ): Promise<Record<string, SchemaFields>> {
    const graph = await this.#graphOf(caller, assistant_id);
    const found = await queryGraph(this.#context, { kind: "subgraphs", namespace, recurse, graph });
    return Object.fromEntries(Object.entries(found).map(([name, schemas]) => [name, schemasOf(schemas, undefined)]));
  }

  async #graphOf(caller: Caller, id: string): Promise<GraphInUse> {
    const { graph_id, config, context } = await this.get(caller, id);
    return { graph_id, config, context };
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
    // JavaScript graphs declare one schema for config and context.
    context_schema: pick("config"),
  };
}

/** Returns an assistant's ID. The name of a graph refers to its default assistant. */
export const assistantIdOf = (assistant_id: string): string =>
  isUuid(assistant_id) ? assistant_id.toLowerCase() : defaultAssistantId(assistant_id);

/**
 * @param assistant_id the id of an assistant, or the name of a graph
 * @param find pass `lockAssistant` to lock the row
 * @throws ApiError assistant_not_found
 */
async function requireAssistant(
  tx: Tx,
  caller: Caller,
  assistant_id: string,
  find = findAssistant,
): Promise<AssistantRow> {
  const found = await findAssistantOrGraph(tx, caller, assistant_id, find);
  if (!found) throw new ApiError("assistant_not_found");
  return found;
}

/** Like {@link requireAssistant}, but returns undefined if the assistant does not exist. */
export const findAssistantOrGraph = (
  tx: Tx,
  caller: Caller,
  assistant_id: string,
  find = findAssistant,
): Promise<AssistantRow | undefined> =>
  find(tx, caller.tenant_id, assistantIdOf(assistant_id), filterOf(caller, "assistants"));

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
