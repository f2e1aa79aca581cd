import type { AssistantCreate, AssistantFilter, AssistantPatch, AssistantSearch } from "../contract/assistants.ts";
import type { Caller } from "../contract/caller.ts";
import type { Assistant, AssistantVersion } from "../contract/records.ts";
import { ApiError } from "../errors.ts";
import type { Question } from "../graphs/host.ts";
import { isUuid, newId } from "../lib/ids.ts";
import { isoOfMilliseconds } from "../lib/times.ts";
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
import type { Tx } from "../storage/database.ts";
import { listActiveRunsOfAssistant } from "../storage/runs.ts";
import type { AssistantRow, AssistantVersionRow } from "../storage/schema.ts";
import { listThreadsOfAssistant, lockThread } from "../storage/threads.ts";
import { cancelLocked, type PendingCancel } from "./cancel.ts";
import type { AgentContext } from "./context.ts";
import { defaultAssistantId } from "./default-assistants.ts";
import { askGraph } from "./questions.ts";
import { removeThread } from "./threads.ts";

/** Graphs with a configuration, under a name, in versions. */
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

  /** Every change makes a version, an empty one too: clients count on it. */
  async patch(caller: Caller, assistant_id: string, body: AssistantPatch): Promise<Assistant> {
    const { database, catalog } = this.#context;
    if (body.graph_id !== undefined) catalog.require(body.graph_id);
    const row = await database.write(async (tx) => {
      const current = await lockAssistant(tx, caller.tenant_id, idOf(assistant_id));
      if (!current) throw new ApiError("assistant_not_found");
      const metadata = JSON.stringify({ ...JSON.parse(current.metadata), ...body.metadata });
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

  /** Deletes the assistant with its versions and stops its runs; with `delete_threads` also the threads it worked on last. */
  async delete(caller: Caller, assistant_id: string, { delete_threads }: { delete_threads: boolean }): Promise<void> {
    const { database, engine } = this.#context;
    const cancels = await database.write(async (tx) => {
      const assistant = await lockAssistant(tx, caller.tenant_id, idOf(assistant_id));
      if (!assistant) throw new ApiError("assistant_not_found");
      if (this.#isDefault(assistant)) throw new ApiError("assistant_is_default", { assistant_id });
      const stopped: PendingCancel[] = [];
      for (const run of await listActiveRunsOfAssistant(tx, assistant)) {
        await lockThread(tx, caller.tenant_id, run.thread_id);
        stopped.push(await cancelLocked(tx, run, { action: "interrupt", reason: null }));
      }
      if (delete_threads) {
        for (const thread of await listThreadsOfAssistant(tx, caller.tenant_id, assistant.assistant_id)) {
          await lockThread(tx, caller.tenant_id, thread.thread_id);
          stopped.push(...(await removeThread(tx, thread)));
        }
      }
      await deleteAssistant(tx, assistant);
      return stopped;
    });
    for (const cancel of cancels) cancel.announce(database, engine.events);
  }

  #isDefault(assistant: AssistantRow): boolean {
    return (
      this.#context.catalog.has(assistant.graph_id) && defaultAssistantId(assistant.graph_id) === assistant.assistant_id
    );
  }

  async search({ tenant_id }: Caller, { metadata, graph_id, name, ...paging }: AssistantSearch): Promise<Assistant[]> {
    const rows = await searchAssistants(this.#context.database.read, tenant_id, { metadata, graph_id, name }, paging);
    return rows.map(toAssistant);
  }

  count({ tenant_id }: Caller, filter: AssistantFilter): Promise<number> {
    return countAssistants(this.#context.database.read, tenant_id, filter);
  }

  async versions(
    caller: Caller,
    assistant_id: string,
    filter: { metadata?: object; limit: number; offset: number },
  ): Promise<AssistantVersion[]> {
    const { read } = this.#context.database;
    const assistant = await requireAssistant(read, caller, assistant_id);
    return (await listVersions(read, assistant, filter)).map(toVersion);
  }

  /** Puts an earlier (or later) version in force, with everything it holds. */
  async setLatest(caller: Caller, assistant_id: string, version: number): Promise<Assistant> {
    const row = await this.#context.database.write(async (tx) => {
      const assistant = await lockAssistant(tx, caller.tenant_id, idOf(assistant_id));
      if (!assistant) throw new ApiError("assistant_not_found");
      const wanted = await findVersion(tx, assistant, version);
      if (!wanted) throw new ApiError("version_not_found", { assistant_id, version });
      return setAssistant(tx, wanted);
    });
    return toAssistant(row);
  }

  /** The drawing, as JSON text. */
  drawing(caller: Caller, assistant_id: string, xray: boolean | number): Promise<string> {
    return this.#ask(caller, assistant_id, { kind: "drawing", xray });
  }

  /** The schemas, as JSON text. */
  schemas(caller: Caller, assistant_id: string): Promise<string> {
    return this.#ask(caller, assistant_id, { kind: "schemas" });
  }

  /** Schemas by namespace, as JSON text. */
  subgraphs(caller: Caller, assistant_id: string, namespace: string | undefined, recurse: boolean): Promise<string> {
    return this.#ask(caller, assistant_id, { kind: "subgraphs", namespace, recurse });
  }

  async #ask(caller: Caller, assistant_id: string, question: AboutGraph): Promise<string> {
    const assistant = await requireAssistant(this.#context.database.read, caller, assistant_id);
    const { graph_id, config, context } = toAssistant(assistant);
    return askGraph(this.#context, { ...question, graph: { graph_id, config, context } }) as Promise<string>;
  }
}

type AboutGraph = DistributiveOmit<Extract<Question, { kind: "drawing" | "schemas" | "subgraphs" }>, "graph">;
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** A graph's name stands for its default assistant. */
const idOf = (assistant_id: string): string =>
  isUuid(assistant_id) ? assistant_id.toLowerCase() : defaultAssistantId(assistant_id);

/**
 * The assistant with this id, or the default assistant of the graph with this name.
 *
 * @throws ApiError assistant_not_found
 */
async function requireAssistant(tx: Tx, caller: Caller, assistant_id: string): Promise<AssistantRow> {
  const found = await findAssistant(tx, caller.tenant_id, idOf(assistant_id));
  if (!found) throw new ApiError("assistant_not_found");
  return found;
}

/** As {@link requireAssistant}, for the body of a run: undefined when there is none. */
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
