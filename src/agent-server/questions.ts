import { ApiError } from "../platform/errors.ts";
import { DatabaseUnavailableError } from "../platform/lib/unavailable.ts";
import type { AgentContext } from "./context.ts";
import type { Question } from "./graph-hosts/host.ts";
import { QuestionError } from "./graph-hosts/reader.ts";

/**
 * Asks a graph host, and turns what the graph could not do into an error for the caller.
 *
 * @throws ApiError graph_not_found, graph_unavailable, graph_failed, or unavailable when no host answers
 */
export async function askGraph<Q extends Question>({ engine, catalog }: AgentContext, question: Q) {
  catalog.require(question.graph.graph_id);
  try {
    return await engine.reader.ask(question);
  } catch (error) {
    if (!(error instanceof QuestionError)) throw error;
    if (error.kind === DatabaseUnavailableError.name) throw new DatabaseUnavailableError(error.message);
    if (error.kind === "GraphHostError")
      throw new ApiError("unavailable", { reason: `The graph could not be read. ${error.message}` }, error);
    throw new ApiError("graph_failed", { reason: `${error.kind}: ${error.message}` }, error);
  }
}
