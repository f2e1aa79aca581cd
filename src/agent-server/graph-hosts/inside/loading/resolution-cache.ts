import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { type ResolveFnOutput, registerHooks } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * Saves Node.js most of the resolution of imports between installed packages. For each of 900 modules of LangChain it reads two or more
 * package.json files again and parses their export maps, which takes 40 % of the loading time and leaves 90 MB of garbage.
 *
 * Imports of the project's own files, `require()`, and whatever is no existing ES module are resolved by Node.js.
 */
registerHooks({
  resolve(specifier, context, next) {
    const { parentURL, conditions } = context;
    if (!parentURL?.includes("/node_modules/") || !conditions?.includes("import")) return next(specifier, context);
    if (FILE.test(specifier)) return moduleAt(new URL(specifier, parentURL).href) ?? next(specifier, context);
    const from = folderAt(dirnameOf(parentURL));
    if (BUILT_IN_OR_RELATIVE.test(specifier) || !from?.package) return next(specifier, context);
    const key = `${from.package.folder} ${specifier} ${conditions}`;
    const known = packages.get(key) ?? { ...next(specifier, context), shortCircuit: true };
    packages.set(key, known);
    return known;
  },
});

const FILE = /^\.\.?\/[\w./@-]+\.m?js$/;
const BUILT_IN_OR_RELATIVE = /^(node:|\.)/;

interface Folder {
  /** The real folder, without symbolic links, with a trailing slash. */
  path: string;
  url: string;
  package: Package | undefined;
}

/** The nearest package.json, which decides the format of .js files. */
interface Package {
  folder: string;
  type: unknown;
}

/** Results by the folder of the importing package, the specifier, and the conditions. */
const packages = new Map<string, ResolveFnOutput>();
/** Folders by their URL, with a trailing slash. */
const folders = new Map<string, Folder | undefined>();

const dirnameOf = (url: string): string => url.slice(0, url.lastIndexOf("/") + 1);

/** Returns undefined if there is no such file, or if its format is not certain. */
function moduleAt(url: string): ResolveFnOutput | undefined {
  const folder = folderAt(dirnameOf(url));
  if (!folder || (url.endsWith(".js") && folder.package?.type !== "module")) return undefined;
  const name = url.slice(url.lastIndexOf("/") + 1);
  if (!lstatSync(folder.path + name, { throwIfNoEntry: false })?.isFile()) return undefined;
  return { url: folder.url + name, format: "module", shortCircuit: true };
}

function folderAt(url: string): Folder | undefined {
  if (!folders.has(url)) folders.set(url, readFolder(url));
  return folders.get(url);
}

function readFolder(url: string): Folder | undefined {
  try {
    const real = realpathSync.native(fileURLToPath(url));
    const path = real.endsWith("/") ? real : `${real}/`;
    return { path, url: pathToFileURL(path).href, package: packageOf(path) };
  } catch {
    return undefined;
  }
}

function packageOf(folder: string): Package | undefined {
  try {
    return { folder, type: JSON.parse(readFileSync(`${folder}package.json`, "utf8")).type };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const parent = new URL("..", pathToFileURL(folder)).href;
    return folder.endsWith("/node_modules/") ? undefined : folderAt(parent)?.package;
  }
}
