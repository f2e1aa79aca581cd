import type { GraphSchema, GraphSchemas, JsonSchema } from "../host.ts";
import type { Library } from "./loading/library.ts";
import type { CompiledGraph } from "./loading/load.ts";

/** What a StateGraph keeps of the schemas that it was made with: records whose keys are the channels. */
interface Builder {
  _schemaDefinition?: unknown;
  _inputDefinition?: unknown;
  _outputDefinition?: unknown;
  _configSchema?: unknown;
}

/**
 * The JSON schemas that a graph knows of itself at run time: those of state defined with Zod or another Standard Schema. Of state
 * that was defined by TypeScript types alone they have the names of the keys; null where there is nothing to name.
 */
export function schemasOf(graph: CompiledGraph, { schemas }: Library): GraphSchemas {
  const { builder = {} } = graph as { builder?: Builder };
  const read = (schemaOf: ((graph: never) => unknown) | undefined, definition: unknown): GraphSchema => {
    const declared = known(schemaOf, graph);
    return declared ? { schema: declared, is_whole: true } : { schema: keysOf(definition), is_whole: false };
  };
  return {
    input: read(schemas?.getInputTypeSchema, builder._inputDefinition),
    output: read(schemas?.getOutputTypeSchema, builder._outputDefinition),
    state: read(schemas?.getStateTypeSchema, builder._schemaDefinition),
    config: read(schemas?.getConfigTypeSchema, builder._configSchema),
  };
}

/** An object whose keys are named and may hold anything; null for a state that is no object. */
function keysOf(definition: unknown): JsonSchema | null {
  const keys = (definition as { spec?: unknown } | undefined)?.spec ?? definition;
  if (typeof keys !== "object" || keys === null || "__root__" in keys) return null;
  return { type: "object", properties: Object.fromEntries(Object.keys(keys).map((key) => [key, {}])) };
}

/** Some schemas throw on types that JSON schema cannot express (functions, for example): then there is none. */
function known(schemaOf: ((graph: never) => unknown) | undefined, graph: CompiledGraph): JsonSchema | null {
  try {
    return (schemaOf?.(graph as never) as JsonSchema | undefined) ?? null;
  } catch {
    return null;
  }
}
