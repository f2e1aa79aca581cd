import * as nodeModule from "node:module";

/** The same file with the extension that this module has: .ts in the repository, .js in the package. */
const GET_TOKEN = new URL(
  `../author/get-token${import.meta.url.slice(import.meta.url.lastIndexOf("."))}`,
  import.meta.url,
).href;

/**
 * `threadmill/graph` is this program's own file, whether or not the project has the package among its own: with npx it has not.
 * A module's body is executed once a thread, so there is one hook however many hosts a thread has (`--inline`). Node.js has
 * these hooks from 22.15 on; before, the project has to install the package.
 */
nodeModule.registerHooks?.({
  resolve: (specifier, context, next) =>
    specifier === "threadmill/graph" ? { url: GET_TOKEN, shortCircuit: true } : next(specifier, context),
});
