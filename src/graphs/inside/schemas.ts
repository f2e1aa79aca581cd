import {
  getConfigTypeSchema,
  getInputTypeSchema,
  getOutputTypeSchema,
  getStateTypeSchema,
} from "@langchain/langgraph/zod/schema";
import type { CompiledGraph } from "./load.ts";

/**
 * The JSON schemas that a graph knows of itself at run time: those of state defined with zod. Of state that was defined by
 * TypeScript types alone the input has the names of its keys, so that a form knows whether the graph takes messages, and the
 * rest is null.
 */
export function schemasOf(graph: CompiledGraph): Record<string, unknown> {
  const config = known(getConfigTypeSchema, graph);
  return {
    input_schema: known(getInputTypeSchema, graph) ?? keysOf(graph),
    output_schema: known(getOutputTypeSchema, graph),
    state_schema: known(getStateTypeSchema, graph),
    config_schema: config,
    // JavaScript graphs declare one schema for both.
    context_schema: config,
  };
}

/** An object whose keys are named and may hold anything; null for a state that is no object. */
function keysOf(graph: CompiledGraph): unknown {
  const { builder } = graph as { builder?: { _inputDefinition?: unknown } };
  const definition = builder?._inputDefinition;
  if (typeof definition !== "object" || definition === null || "__root__" in definition) return null;
  return { type: "object", properties: Object.fromEntries(Object.keys(definition).map((key) => [key, {}])) };
}

/** Some schemas throw on types that JSON schema cannot express (functions, for example): then there is none. */
function known(schemaOf: (graph: unknown) => unknown, graph: CompiledGraph): unknown {
  try {
    return schemaOf(graph) ?? null;
  } catch {
    return null;
  }
}
