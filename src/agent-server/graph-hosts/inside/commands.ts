import type { Command } from "@langchain/langgraph";
import type { RunCommand } from "../host.ts";
import type { Library } from "./loading/library.ts";

/** The client's command as LangGraph's. `resume` may be any value, also null or false. */
export function toCommand({ resume, update, goto }: RunCommand, { langgraph }: Library): Command {
  const fields: ConstructorParameters<typeof Command>[0] = {};
  if (resume !== undefined) fields.resume = resume;
  if (update !== undefined && update !== null) fields.update = update as Record<string, unknown>;
  if (goto !== undefined && goto !== null) {
    fields.goto = [goto]
      .flat()
      .map((target) => (typeof target === "string" ? target : new langgraph.Send(target.node, target.input)));
  }
  return new langgraph.Command(fields);
}
