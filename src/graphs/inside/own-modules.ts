import * as nodeModule from "node:module";
import { pathToFileURL } from "node:url";

/** The same file with the extension that this module has: .ts in the repository, .js in the package. */
const GET_TOKEN = new URL(
  `../author/get-token${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
).href;

/** What a project that brings no packages may use all the same, with what lies below them. */
const PROVIDED = /^@langchain\/(langgraph|core)(\/|$)/;

const ownRequire = nodeModule.createRequire(import.meta.url);

/** What an import and a require() say of a package that is not there. */
const NOT_FOUND = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * `threadmill/graph` is this program's own file, whether or not the project has the package among its own: with npx it has not.
 * LangGraph is the project's own where it has one, and otherwise Threadmill's. A module's body is executed once a thread, so
 * there is one hook however many hosts a thread has (`--inline`). Node.js has these hooks from 22.15 on; before, the project has
 * to install the packages.
 */
nodeModule.registerHooks?.({
  resolve(specifier, context, next) {
    if (specifier === "threadmill/graph") return { url: GET_TOKEN, shortCircuit: true };
    if (!PROVIDED.test(specifier)) return next(specifier, context);
    try {
      return next(specifier, context);
    } catch (error) {
      if (!NOT_FOUND.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      // A require() looks where it stands, whatever the context says.
      return context.conditions?.includes("require")
        ? { url: pathToFileURL(ownRequire.resolve(specifier)).href, shortCircuit: true }
        : next(specifier, { ...context, parentURL: import.meta.url });
    }
  },
});
