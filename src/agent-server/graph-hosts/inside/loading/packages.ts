import * as nodeModule from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { resolve as resolveImport } from "import-meta-resolve";

/** The same file with the extension that this module has: .ts in the repository, .js in the package. */
const GET_TOKEN = new URL(
  `../../author/get-token${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
).href;

/** The packages of which a graph and its host must use one copy; a project without them gets Threadmill's. */
const SHARED = /^@langchain\/(core|langgraph|langgraph-checkpoint)(\/|$)/;

/** What an import and a require() report of a package that is not there. */
const NOT_FOUND = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/** A package can be loaded twice from one folder: its ES modules by `import`, its CommonJS modules by `require()`. */
export type ModuleFormat = "import" | "require";

/** A copy of a shared package that modules of a graph use. */
export interface PackageCopy {
  name: string;
  /** URL of its folder, with a slash at its end. */
  folder: string;
  format: ModuleFormat;
}

/** The copies that the import under way has used, in the order of their first use. */
let used = new Map<string, PackageCopy>();
/** URL of the module whose import is under way. */
let importing = import.meta.url;
/** One import at a time, so that it is known which of them uses what. */
let lastImport: Promise<unknown> = Promise.resolve();
/** In which format the project uses a copy, by its folder; the later import wins, as the one before may have failed. */
const formats = new Map<string, ModuleFormat>();
/** Folders of Threadmill's copies that a project without its own has been given. */
const provided = new Set<string>();

/** The exports of a module, and the copies of shared packages that its import has loaded or found loaded. */
export interface Imported {
  exports: Record<string, unknown>;
  copies: readonly PackageCopy[];
}

/** Imports a module of the project by its URL. */
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

/** The format in which the project uses the package copy that a module belongs to. */
export const formatOf = (url: string): ModuleFormat =>
  [...formats].find(([folder]) => url.startsWith(folder))?.[1] ?? "import";

/** The URL of the module that a specifier means to the module `from`. */
export function locate(specifier: string, { from, format }: { from: string; format: ModuleFormat }): string {
  if (format === "import") return resolveImport(specifier, from);
  return pathToFileURL(nodeModule.createRequire(from).resolve(specifier)).href;
}

/** Loads a module by its URL, in the format in which {@link locate} found it. */
export const load = async (url: string, format: ModuleFormat): Promise<unknown> =>
  format === "import" ? import(url) : nodeModule.createRequire(url)(fileURLToPath(url));

export const isNotFound = (error: unknown): boolean =>
  NOT_FOUND.has((error as NodeJS.ErrnoException | null)?.code ?? "");

/** The folder of the package that a module belongs to. */
function folderOf(name: string, url: string): string {
  const end = url.lastIndexOf(`/${name}/`);
  return end < 0 ? new URL(".", url).href : url.slice(0, end + name.length + 2);
}

const nameOf = (specifier: string): string => specifier.split("/").slice(0, 2).join("/");

function note(specifier: string, { url }: { url: string }, format: ModuleFormat): void {
  const name = nameOf(specifier);
  const folder = folderOf(name, url);
  const key = `${folder} ${format}`;
  if (!used.has(key)) used.set(key, { name, folder, format });
}

/**
 * `threadmill/graph` is this program's own file, whether or not the project has the package among its own: with npx it has not.
 * A shared package is the project's own where it has one, and otherwise Threadmill's, which in turn takes from the project what
 * that has. The hooks are the thread's, and a module is executed once a thread: one set, however many hosts a thread has
 * (`--inline`).
 */
nodeModule.registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "threadmill/graph") return { url: GET_TOKEN, shortCircuit: true };
    if (!SHARED.test(specifier)) return next(specifier, context);
    const format: ModuleFormat = context.conditions?.includes("require") ? "require" : "import";
    // Node writes what one call of next() was given into the context of the following ones.
    const { parentURL } = context;
    const natural = () => next(specifier, { ...context, parentURL });
    const from = (base: string) =>
      // A require() resolves from where it is called, whatever the context says.
      format === "require"
        ? { url: locate(specifier, { from: base, format }), shortCircuit: true }
        : next(specifier, { ...context, parentURL: base });
    const own = () => {
      const found = from(import.meta.url);
      provided.add(folderOf(nameOf(specifier), found.url));
      return found;
    };
    const isFromProvided = [...provided].some((folder) => parentURL?.startsWith(folder));
    const resolved = firstFound(isFromProvided ? [() => from(importing), natural] : [natural, own]);
    note(specifier, resolved, format);
    return resolved;
  },
});

function firstFound<T>([attempt, ...others]: (() => T)[]): T {
  try {
    return (attempt as () => T)();
  } catch (error) {
    if (others.length === 0 || !isNotFound(error)) throw error;
    return firstFound(others);
  }
}
