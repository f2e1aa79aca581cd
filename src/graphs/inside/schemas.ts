import {
  getConfigTypeSchema,
  getInputTypeSchema,
  getOutputTypeSchema,
  getStateTypeSchema,
} from "@langchain/langgraph/zod/schema";
import type { CompiledGraph } from "./load.ts";

/**
 * The JSON schemas that a graph knows of itself at run time: those of state defined with zod. A part that was
 * defined by TypeScript types alone is null.
 */
export function schemasOf(graph: CompiledGraph): Record<string, unknown> {
  const config = known(getConfigTypeSchema, graph);
  return {
    input_schema: known(getInputTypeSchema, graph),
    output_schema: known(getOutputTypeSchema, graph),
    state_schema: known(getStateTypeSchema, graph),
    config_schema: config,
    // JavaScript graphs declare one schema for both.
    context_schema: config,
  };
}

/** Some schemas throw on types that JSON schema cannot express (functions, for example): then there is none. */
function known(schemaOf: (graph: unknown) => unknown, graph: CompiledGraph): unknown {
  try {
    return schemaOf(graph) ?? null;
  } catch {
    return null;
  }
}
