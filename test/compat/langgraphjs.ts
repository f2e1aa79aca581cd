import { join } from "node:path";
import { installed } from "../support/installed.ts";

/** The newest that knows `deploy`: what npm calls the latest, 2.0.0, has lost it. */
const VERSION = "1.5.1";
export const PACKAGE = `@langchain/langgraph-cli@${VERSION}`;

/**
 * The official JavaScript CLI; undefined when npm cannot install it. Its peers contradict our own packages, and `npm ci` refuses the lock
 * file that `npm install` makes of both.
 */
export async function langgraphjs(): Promise<{ script?: string }> {
  const dependencies = { "@langchain/langgraph-cli": VERSION };
  const modules = await installed("The official JavaScript CLI", dependencies, ["--legacy-peer-deps"]);
  return modules === undefined ? {} : { script: join(modules, "@langchain/langgraph-cli/dist/cli/cli.mjs") };
}
