import type { Caller } from "../../../platform/contract/caller.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
import type { Assistants } from "../../assistants/assistants.ts";
import { defaultAssistantId } from "../../assistants/default-assistants.ts";
import { filterOf } from "../../auth/grants.ts";
import type { AgentContext } from "../../context.ts";
import { listAssistantNames } from "../../storage/assistants.ts";
import type { AssistantRow } from "../../storage/schema.ts";

/** A tool of the MCP protocol. */
export interface AssistantTool {
  name: string;
  description?: string;
  inputSchema: { type: "object"; [keyword: string]: unknown };
}

/** The APIs of models accept tool names of up to 64 letters, digits, hyphens and underscores. */
const MAX_NAME_LENGTH = 64;
const SUFFIX_LENGTH = 12;

/** The names of all tools are computed for each list and for calls by other names than that of a graph. */
const MAX_TOOLS = 10_000;

/** Reading a page queries the graph host once per tool. */
const PAGE = 50;

const sanitized = (name: string): string => name.replaceAll(/[^\w-]/g, "_").slice(0, MAX_NAME_LENGTH) || "_";

/**
 * Returns the assistants' ids by the names of their tools. Of several assistants with the same name, the first has the plain name, and
 * those of the others end with the last characters of their id. Default assistants are first, so a graph keeps its name.
 */
export function toolNames(assistants: readonly Pick<AssistantRow, "assistant_id" | "graph_id" | "name">[]) {
  const isDefault = ({ assistant_id, graph_id }: (typeof assistants)[number]) =>
    assistant_id === defaultAssistantId(graph_id);
  const rank = (one: (typeof assistants)[number]) => (isDefault(one) ? (sanitized(one.name) === one.name ? 0 : 1) : 2);
  const names = new Map<string, string>();
  for (const { assistant_id, name } of assistants.toSorted((a, b) => rank(a) - rank(b))) {
    const plain = sanitized(name);
    const suffixed = `${plain.slice(0, MAX_NAME_LENGTH - SUFFIX_LENGTH - 1)}_${assistant_id.slice(-SUFFIX_LENGTH)}`;
    names.set(names.has(plain) ? suffixed : plain, assistant_id);
  }
  return names;
}

/** The assistants that a caller can read, as tools. */
export class Tools {
  readonly #context: AgentContext;
  readonly #assistants: Assistants;

  constructor(context: AgentContext, assistants: Assistants) {
    this.#context = context;
    this.#assistants = assistants;
  }

  /** The id of a graph is the name of its default assistant's tool. */
  isGraph(name: string): boolean {
    return sanitized(name) === name && this.#context.catalog.has(name);
  }

  /** @param metadata selects the assistants whose metadata contains it */
  async find(caller: Caller, metadata: JsonObject | undefined, name: string): Promise<string | undefined> {
    return (await this.#names(caller, metadata)).get(name);
  }

  /** @returns undefined if the cursor is invalid */
  async list(
    caller: Caller,
    metadata: JsonObject | undefined,
    cursor: string | undefined,
  ): Promise<{ tools: AssistantTool[]; nextCursor?: string } | undefined> {
    if (cursor !== undefined && !/^\d{1,9}$/.test(cursor)) return undefined;
    const names = [...(await this.#names(caller, metadata))];
    const start = Number(cursor ?? 0);
    const end = start + PAGE;
    const tools = await Promise.all(names.slice(start, end).map(([name, id]) => this.#toolOf(caller, name, id)));
    return {
      tools: tools.filter((tool) => tool !== undefined),
      ...(end < names.length && { nextCursor: String(end) }),
    };
  }

  async #names(caller: Caller, metadata: JsonObject | undefined): Promise<Map<string, string>> {
    const access = filterOf(caller, "assistants");
    const { search } = this.#context.database;
    return toolNames(await listAssistantNames(search, caller.tenant_id, { metadata, access }, MAX_TOOLS));
  }

  /** Returns undefined if the assistant was deleted meanwhile, or its graph cannot be used. */
  async #toolOf(caller: Caller, name: string, assistant_id: string): Promise<AssistantTool | undefined> {
    try {
      const { description } = await this.#assistants.get(caller, assistant_id);
      const { input_schema } = await this.#assistants.schemas(caller, assistant_id);
      return { name, ...(description && { description }), inputSchema: inputSchemaOf(input_schema as JsonObject) };
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return undefined;
      throw error;
    }
  }
}

/**
 * Clients reject a schema whose root is not an object. They hide tools whose schema has an invalid `x-mcp-header`, which asks them to
 * repeat an argument in a header.
 */
function inputSchemaOf(schema: JsonObject | null | undefined): AssistantTool["inputSchema"] {
  const isOfObject = schema?.type === undefined || schema.type === "object";
  const text = JSON.stringify({ ...(isOfObject && schema), type: "object" });
  return JSON.parse(text, (key, value) => (key === "x-mcp-header" ? undefined : value)) as AssistantTool["inputSchema"];
}
