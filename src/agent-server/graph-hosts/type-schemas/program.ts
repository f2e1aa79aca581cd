import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
// The last version with an API in JavaScript.
import ts from "typescript-5";
import { hashOf } from "./cache.ts";

export interface GraphProgram {
  program: ts.Program;
  /** What the program was made of (see CachedSchemas); absent when a file that is created later would change it. */
  files: Record<string, string> | undefined;
}

/** What a project that brings no packages may use all the same; as in inside/packages.ts. */
const PROVIDED = /^@langchain\/(core|langgraph|langgraph-checkpoint)(\/|$)/;
const OWN_FILE = fileURLToPath(import.meta.url);

/** For a project without a tsconfig.json. */
const DEFAULTS: ts.CompilerOptions = {
  module: ts.ModuleKind.Preserve,
  lib: ["lib.esnext.d.ts"],
  strict: true,
};

/**
 * Only types are read: nothing is checked or written, and the global types of packages cost time. Without the null checks null
 * would be dropped from the types.
 */
const FORCED: ts.CompilerOptions = {
  allowJs: true,
  allowImportingTsExtensions: true,
  resolveJsonModule: true,
  skipLibCheck: true,
  strictNullChecks: true,
  noEmit: true,
  types: [],
};

/** Parsed files of packages by path: parsing takes most of the time, and a project's graphs share them. */
const parsedFiles = new Map<string, ts.SourceFile | undefined>();
let parsedWith = "";

/** The last program, for the other graphs of its file. */
let last: (GraphProgram & { key: string }) | undefined;

/** The program of a graph's file, with the options of the project's tsconfig.json if there is one. */
export function programOf(file: string, project_dir: string): GraphProgram {
  const key = JSON.stringify([file, project_dir]);
  if (last?.key === key && last.files && isUnchanged(last.files)) return last;
  const inputs = new Set([file, join(project_dir, "package.json")]);
  const options = optionsOf(project_dir, inputs);
  const missing: string[] = [];
  const program = ts.createProgram({ rootNames: [file], options, host: hostOf(project_dir, options, missing) });
  last = { key, program, files: missing.length === 0 ? hashesOf(program, project_dir, inputs) : undefined };
  return last;
}

const isUnchanged = (files: Record<string, string>): boolean =>
  Object.entries(files).every(([path, hash]) => hashOf(ts.sys.readFile(path)) === hash);

/** @param inputs receives the files that the options come from, whether they exist or not */
function optionsOf(project_dir: string, inputs: Set<string>): ts.CompilerOptions {
  const config = join(project_dir, "tsconfig.json");
  inputs.add(config);
  const parsed = ts.getParsedCommandLineOfConfigFile(config, FORCED, {
    ...ts.sys,
    // The graph's file alone is the program: listing the others takes time in a large repository.
    readDirectory: () => [],
    readFile(path) {
      inputs.add(path);
      return ts.sys.readFile(path);
    },
    onUnRecoverableConfigFileDiagnostic: () => {},
  });
  const options = parsed?.options ?? { ...DEFAULTS, ...FORCED };
  options.target ??= ts.ScriptTarget.ESNext;
  // The older resolutions do not read "exports" of a package.json; `module: commonjs` alone implies one of them.
  const { module = ts.ModuleKind.CommonJS, moduleResolution } = options;
  const isOld =
    moduleResolution === undefined ? module < ts.ModuleKind.Node16 : moduleResolution < ts.ModuleResolutionKind.Node16;
  if (isOld) options.moduleResolution = ts.ModuleResolutionKind.Bundler;
  return options;
}

/** @param missing receives the relative imports of the project that no file was found for */
function hostOf(project_dir: string, options: ts.CompilerOptions, missing: string[]): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const cache = ts.createModuleResolutionCache(project_dir, host.getCanonicalFileName, options);
  const optionsText = JSON.stringify(options);
  if (parsedWith !== optionsText) parsedFiles.clear();
  parsedWith = optionsText;
  return {
    ...host,
    getCurrentDirectory: () => project_dir,
    getSourceFile(path, ...how) {
      if (!isOfPackage(path, project_dir)) return host.getSourceFile(path, ...how);
      if (!parsedFiles.has(path)) parsedFiles.set(path, host.getSourceFile(path, ...how));
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
        if (isMissing && !isOfPackage(from, project_dir)) missing.push(text);
        return resolved;
      }),
  };
}

/** Packages of the project; the project itself may lie in a package. */
const isOfPackage = (path: string, project_dir: string): boolean =>
  /(^|[\\/])node_modules[\\/]/.test(relative(project_dir, path));

const PACKAGE_FOLDER = /^(.*\/node_modules\/(@[^/]+\/)?[^/]+)\/.*$/;

/** SHA-256 of the project's files, and of the package.json of each package that has a file in the program. */
function hashesOf(program: ts.Program, project_dir: string, inputs: Iterable<string>): Record<string, string> {
  const sources = program.getSourceFiles();
  const paths = new Set(inputs);
  for (const { fileName } of sources) {
    if (isOfPackage(fileName, project_dir)) paths.add(fileName.replace(PACKAGE_FOLDER, "$1/package.json"));
  }
  const hashes = Object.fromEntries([...paths].map((path) => [path, hashOf(ts.sys.readFile(path))]));
  // The text that was compiled, which the file may no longer have.
  for (const { fileName, text } of sources) if (!isOfPackage(fileName, project_dir)) hashes[fileName] = hashOf(text);
  return hashes;
}
