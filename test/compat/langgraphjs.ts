import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { madeOnce } from "./made-once.ts";

/** The newest that knows `deploy`: what npm calls the latest, 2.0.0, has lost it. */
export const PACKAGE = "@langchain/langgraph-cli@1.5.1";

const LIMIT_MS = 5 * 60_000;

/**
 * The official JavaScript CLI; undefined when npm cannot install it. It has a folder of its own because it cannot be among our
 * development dependencies: its peers contradict our own packages, and `npm ci` refuses the lock file that `npm install` makes of both.
 */
export async function langgraphjs(): Promise<{ script?: string }> {
  const folder = await madeOnce({
    client: "The official JavaScript CLI",
    folder_prefix: "threadmill-langgraphjs",
    made_of: PACKAGE,
    make: install,
  });
  return folder === undefined ? {} : { script: join(folder, "node_modules/@langchain/langgraph-cli/dist/cli/cli.mjs") };
}

async function install(folder: string): Promise<void> {
  const flags = ["--prefix", folder, "--legacy-peer-deps", "--no-audit", "--no-fund", "--loglevel", "error"];
  try {
    await promisify(execFile)("npm", ["install", ...flags, PACKAGE], { timeout: LIMIT_MS });
  } catch (error) {
    const [reason] = ((error as { stderr?: string }).stderr || String(error)).split("\n");
    throw new Error(`npm could not install ${PACKAGE} (${reason}). It needs npm and its registry.`);
  }
}
