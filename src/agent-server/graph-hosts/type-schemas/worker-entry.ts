import { parentPort } from "node:worker_threads";
import type ts from "typescript-5";
import type { JsonSchema } from "../host.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import { programOf } from "./program.ts";
import type { Extraction, ExtractionRequest } from "./reader.ts";

type Type = ts.Type | undefined;

parentPort?.on("message", (request: ExtractionRequest) => parentPort?.postMessage(answer(request)));

function answer(request: ExtractionRequest): Extraction {
  try {
    return extract(request);
  } catch (error) {
    return { failure: String(error) };
  }
}

function extract({ file, export_name, project_dir }: ExtractionRequest): Extraction {
  const { program, files } = programOf(file, project_dir);
  const checker = program.getTypeChecker();
  const typeOf = (owner: Type, name: string): Type => {
    const property = owner && checker.getPropertyOfType(owner, name);
    return property && checker.getNonNullableType(checker.getTypeOfSymbol(property));
  };
  const lastCallOf = (type: Type) => type?.getCallSignatures().at(-1);
  const parameterOf = (owner: Type, method: string, index: number): Type => {
    const parameter = lastCallOf(typeOf(owner, method))?.parameters[index];
    return parameter && checker.getNonNullableType(checker.getTypeOfSymbol(parameter));
  };

  /** The compiled graph of an export, in the forms that inside/load.ts takes, and the agent that wraps it. */
  const graphOf = (exported: Type, agent?: Type, depth = 0): [graph: Type, agent: Type] => {
    const type = exported && checker.getAwaitedType(exported);
    if (!type || depth > 5 || checker.getPropertyOfType(type, "~InputType")) return [type, agent];
    const inner = lastCallOf(typeOf(type, "compile"))?.getReturnType() ?? typeOf(type, "graph");
    return inner ? graphOf(inner, type, depth + 1) : graphOf(lastCallOf(type)?.getReturnType(), agent, depth + 1);
  };

  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  const exportOf = (name: string): Type => {
    const symbol = module && checker.tryGetMemberInModuleExports(name, module);
    return symbol && checker.getTypeOfSymbol(symbol);
  };
  const exported = exportOf(export_name) ?? typeOf(exportOf("default"), export_name);
  if (!exported) return { failure: `no export "${export_name}"`, files };
  const [graph, agent] = graphOf(exported);
  const schemaOf = (type: Type): JsonSchema | null => {
    try {
      return type ? jsonSchemaOf(type, program) : null;
    } catch {
      // A type that the compiler fails on: the other schemas are still of use.
      return null;
    }
  };
  const contextOf = (owner: Type) => schemaOf(typeOf(parameterOf(owner, "invoke", 1), "context"));
  const output = schemaOf(typeOf(graph, "~OutputType"));
  // LangGraph before 1.0 calls the state RunInput.
  const state = schemaOf(typeOf(graph, "~RunOutput") ?? typeOf(graph, "RunInput"));
  return {
    files,
    // The graph of LangChain's createAgent() has an output type alone: the others are those of the agent's methods.
    schemas: {
      input: schemaOf(typeOf(graph, "~InputType")) ?? schemaOf(parameterOf(agent, "invoke", 0)),
      output,
      state: state ?? (agent ? output : null),
      config: contextOf(graph) ?? contextOf(agent),
    },
  };
}
