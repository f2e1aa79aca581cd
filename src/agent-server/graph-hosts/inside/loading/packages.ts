import * as nodeModule from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import "./resolution-cache.ts";
import { resolve as resolveImport } from "import-meta-resolve";

/** The extension is that of this module: .ts in the repository, .js in the package. */
const GET_TOKEN = new URL(
  `../../author/get-token${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
).href;

/** Packages of which a graph and its host must use the same copy. A project without them uses Threadmill's. */
const SHARED = /^@langchain\/(core|langgraph|langgraph-checkpoint)(\/|$)/;

/** Error codes of import and require() for a missing package. */
const NOT_FOUND = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/** A package can be loaded twice: its ES modules by `import`, its CommonJS modules by `require()`. */
export type ModuleFormat = "import" | "require";

export interface PackageCopy {
  name: string;
  /** URL of the package folder, with a trailing slash. */
  folder: string;
  format: ModuleFormat;
}

/** Copies that the current import has used, in the order of their first use. Resolution hooks and this state apply to the whole thread. */
let used = new Map<string, PackageCopy>();
/** URL of the module that is being imported. */
let importing = import.meta.url;
/** Imports run one at a time, so that each used copy is assigned to its import. */
let lastImport: Promise<unknown> = Promise.resolve();
/** The format in which the project last imported each copy, by the copy's folder. Failed imports do not count. */
const formats = new Map<string, ModuleFormat>();
/**
 * Folders of Threadmill's package copies that the project uses because the packages are not installed in the project.
 */
const provided = new Set<string>();

export interface Imported {
  exports: Record<string, unknown>;
  copies: readonly PackageCopy[];
}

export function importModule(url: string): Promise<Imported> {
  const imported = lastImport.then(async () => {
    used = new Map();
    importing = url;
    const exports: Record<string, unknown> = await import(url);
    const copies = [...used.values()];
    for (const { folder, format } of copies.toReversed()) formats.set(folder, format);
    return { exports, copies };
  });
  lastImport = imported.catch(() => undefined);
  return imported;
}

/** Returns the module format in which the project uses the package copy that a module belongs to; by default `import`. */
export const formatOf = (url: string): ModuleFormat =>
  [...formats].find(([folder]) => url.startsWith(folder))?.[1] ?? "import";

export function locate(specifier: string, { from, format }: { from: string; format: ModuleFormat }): string {
  if (format === "import") return resolveImport(specifier, from);
  return pathToFileURL(nodeModule.createRequire(from).resolve(specifier)).href;
}

/** Loads a module by URL, in the format in which {@link locate} resolved it. */
export const load = async (url: string, format: ModuleFormat): Promise<unknown> =>
  format === "import" ? import(url) : nodeModule.createRequire(url)(fileURLToPath(url));

const isNotFound = (error: unknown): boolean => NOT_FOUND.has((error as NodeJS.ErrnoException | null)?.code ?? "");

/** Returns the folder of the package that a module belongs to. */
function folderOf(name: string, url: string): string {
  const end = url.lastIndexOf(`/${name}/`);
  return end < 0 ? new URL(".", url).href : url.slice(0, end + name.length + 2);
}

const nameOf = (specifier: string): string => specifier.split("/").slice(0, 2).join("/");

function recordUse(specifier: string, { url }: { url: string }, format: ModuleFormat): void {
  const name = nameOf(specifier);
  const folder = folderOf(name, url);
  const key = `${folder} ${format}`;
  if (!used.has(key)) used.set(key, { name, folder, format });
}

/**
 * `threadmill/graph` resolves to a file of this program, because with npx the project does not contain the package. A shared package
 * resolves to the project's copy, else to Threadmill's. Imports in Threadmill's copies try the project's copies first.
 */
nodeModule.registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "threadmill/graph") return { url: GET_TOKEN, shortCircuit: true };
    if (!SHARED.test(specifier)) return next(specifier, context);
    const format: ModuleFormat = context.conditions?.includes("require") ? "require" : "import";
    // next() changes the context that it receives.
    const { parentURL } = context;
    const fromParent = () => next(specifier, { ...context, parentURL });
    const from = (base: string) =>
      // A require() resolves from the calling module and ignores the context.
      format === "require"
        ? { url: locate(specifier, { from: base, format }), shortCircuit: true }
        : next(specifier, { ...context, parentURL: base });
    const fromThreadmill = () => {
      const found = from(import.meta.url);
      provided.add(folderOf(nameOf(specifier), found.url));
      return found;
    };
    const isFromProvided = [...provided].some((folder) => parentURL?.startsWith(folder));
    const resolved = firstFound(isFromProvided ? [() => from(importing), fromParent] : [fromParent, fromThreadmill]);
    recordUse(specifier, resolved, format);
    return resolved;
  },
});

/** Returns the result of the first attempt that finds its package. */
export function firstFound<T>([attempt, ...others]: (() => T)[]): T {
  try {
    return (attempt as () => T)();
  } catch (error) {
    if (others.length === 0 || !isNotFound(error)) throw error;
    return firstFound(others);
  }
}
