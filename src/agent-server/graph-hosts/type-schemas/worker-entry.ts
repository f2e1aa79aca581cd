import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
// TypeScript 7 has no compiler API in JavaScript.
import ts from "typescript-5";
import { serveRpc } from "../../../platform/lib/worker-rpc.ts";
import type { JsonSchema } from "../host.ts";
import { hashOf } from "./cache.ts";
import { jsonSchemaOf } from "./json-schema.ts";
import type { Extraction, ExtractionOperations, ExtractionRequest } from "./reader.ts";

interface GraphProgram {
  program: ts.Program;
  /** See CachedSchemas; undefined if an imported file is missing, because creating that file would change the program. */
  files: Record<string, string> | undefined;
}

/** Packages that Threadmill provides to projects that do not contain them, as in inside/loading/packages.ts. */
const PROVIDED = /^@langchain\/(core|langgraph|langgraph-checkpoint)(\/|$)/;
const OWN_FILE = fileURLToPath(import.meta.url);

/** Options for a project without a tsconfig.json. */
const DEFAULTS: ts.CompilerOptions = { module: ts.ModuleKind.Preserve, lib: ["lib.esnext.d.ts"], strict: true };

/** The compiler neither checks nor writes files, and loads no global types of packages. Without strictNullChecks, types contain no null. */
const FORCED: ts.CompilerOptions = {
  allowJs: true,
  allowImportingTsExtensions: true,
  resolveJsonModule: true,
  skipLibCheck: true,
  strictNullChecks: true,
  noEmit: true,
  types: [],
};

class GraphPrograms {
  /** Parsed files of packages by path. Parsing takes most of the time. */
  readonly #parsedFiles = new Map<string, ts.SourceFile | undefined>();
  /** The compiler options of the parsed files, as JSON. */
  #parsedWith = "";
  /** Other graphs of the same file share the last program. */
  #last: (GraphProgram & { key: string }) | undefined;

  get(file: string, project_dir: string): GraphProgram {
    const key = JSON.stringify([file, project_dir]);
    if (this.#last?.key === key && this.#last.files && isUnchanged(this.#last.files)) return this.#last;
    const inputs = new Set([file, join(project_dir, "package.json")]);
    const options = optionsOf(project_dir, inputs);
    const missing: string[] = [];
    const host = this.#createHost(project_dir, options, missing);
    const program = ts.createProgram({ rootNames: [file], options, host });
    this.#last = { key, program, files: missing.length === 0 ? hashesOf(program, project_dir, inputs) : undefined };
    return this.#last;
  }

  /** @param missing receives the relative imports of the project that resolve to no file */
  #createHost(project_dir: string, options: ts.CompilerOptions, missing: string[]): ts.CompilerHost {
    const host = ts.createCompilerHost(options);
    const cache = ts.createModuleResolutionCache(project_dir, host.getCanonicalFileName, options);
    const optionsText = JSON.stringify(options);
    const parsedFiles = this.#parsedFiles;
    if (this.#parsedWith !== optionsText) parsedFiles.clear();
    this.#parsedWith = optionsText;
    return {
      ...host,
      getCurrentDirectory: () => project_dir,
      getSourceFile(path, ...rest) {
        if (!isInPackage(path, project_dir)) return host.getSourceFile(path, ...rest);
        if (!parsedFiles.has(path)) parsedFiles.set(path, host.getSourceFile(path, ...rest));
        return parsedFiles.get(path);
      },
      resolveModuleNameLiterals: (literals, from, redirect, _, source) =>
        literals.map((literal) => {
          const { text } = literal;
          const mode = ts.getModeForUsageLocation(source, literal, options);
          const resolveFrom = (file: string) => ts.resolveModuleName(text, file, options, host, cache, redirect, mode);
          const resolved = resolveFrom(from);
          if (resolved.resolvedModule) return resolved;
          if (PROVIDED.test(text)) return resolveFrom(OWN_FILE);
          const isMissing = text.startsWith(".") && !ts.sys.fileExists(resolve(dirname(from), text));
          if (isMissing && !isInPackage(from, project_dir)) missing.push(text);
          return resolved;
        }),
    };
  }
}

const isUnchanged = (files: Record<string, string>): boolean =>
  Object.entries(files).every(([path, hash]) => hashOf(ts.sys.readFile(path)) === hash);

/** @param inputs receives the files that determine the options, including missing ones */
function optionsOf(project_dir: string, inputs: Set<string>): ts.CompilerOptions {
  const config = join(project_dir, "tsconfig.json");
  inputs.add(config);
  const parsed = ts.getParsedCommandLineOfConfigFile(config, FORCED, {
    ...ts.sys,
    // The program needs only the graph's file and its imports. A list of all files takes time in a large repository.
    readDirectory: () => [],
    readFile(path) {
      inputs.add(path);
      return ts.sys.readFile(path);
    },
    onUnRecoverableConfigFileDiagnostic: () => {},
  });
  const options = parsed?.options ?? { ...DEFAULTS, ...FORCED };
  options.target ??= ts.ScriptTarget.ESNext;
  // Older module resolutions ignore "exports" of a package.json; `module: commonjs` implies one of them.
  const { module = ts.ModuleKind.CommonJS, moduleResolution } = options;
  const isOldResolution =
    moduleResolution === undefined ? module < ts.ModuleKind.Node16 : moduleResolution < ts.ModuleResolutionKind.Node16;
  if (isOldResolution) options.moduleResolution = ts.ModuleResolutionKind.Bundler;
  return options;
}

/** Whether a file is in `node_modules` of the project. The path is relative, because the project itself may be in `node_modules`. */
const isInPackage = (path: string, project_dir: string): boolean =>
  /(^|[\\/])node_modules[\\/]/.test(relative(project_dir, path));

const PACKAGE_FOLDER = /^(.*\/node_modules\/(@[^/]+\/)?[^/]+)\/.*$/;

/** Returns the SHA-256 of the project's files, and of the package.json of each package with a file in the program. */
function hashesOf(program: ts.Program, project_dir: string, inputs: Iterable<string>): Record<string, string> {
  const sources = program.getSourceFiles();
  const paths = new Set(inputs);
  for (const { fileName } of sources) {
    if (isInPackage(fileName, project_dir)) paths.add(fileName.replace(PACKAGE_FOLDER, "$1/package.json"));
  }
  const hashes = Object.fromEntries([...paths].map((path) => [path, hashOf(ts.sys.readFile(path))]));
  // Uses the compiled text, because the file may have changed since.
  for (const { fileName, text } of sources) if (!isInPackage(fileName, project_dir)) hashes[fileName] = hashOf(text);
  return hashes;
}

type Type = ts.Type | undefined;

const programs = new GraphPrograms();

serveRpc({ extract } satisfies ExtractionOperations);

function extract({ file, export_name, project_dir }: ExtractionRequest): Extraction {
  const { program, files } = programs.get(file, project_dir);
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

  /** Returns the types of an export's compiled graph and of the agent that contains it, for the exports that loading/load.ts accepts. */
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
      // If the compiler fails on one type, the other schemas are still useful.
      return null;
    }
  };
  const contextOf = (owner: Type) => schemaOf(typeOf(parameterOf(owner, "invoke", 1), "context"));
  const output = schemaOf(typeOf(graph, "~OutputType"));
  // LangGraph before 1.0 calls the state type RunInput.
  const state = schemaOf(typeOf(graph, "~RunOutput") ?? typeOf(graph, "RunInput"));
  return {
    files,
    // The graph of LangChain's createAgent() has only an output type. The agent's methods have the other types.
    schemas: {
      input: schemaOf(typeOf(graph, "~InputType")) ?? schemaOf(parameterOf(agent, "invoke", 0)),
      output,
      state: state ?? (agent ? output : null),
      config: contextOf(graph) ?? contextOf(agent),
    },
  };
}
