import type { Dirent } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type IgnoreRules, NEVER_DEPLOYED, readIgnoreRules } from "../../control-plane/contract/ignore-rules.ts";
import { CommandError } from "../experiments/command-error.ts";

/** What is to be packed. */
export interface SourceFiles {
  /** Relative to the folder, with `/`. */
  paths: string[];
  /** Of all files, unpacked. */
  bytes: number;
  /** Links, which are not packed. */
  links: string[];
}

/** What the service takes; it says so, too, but only after the upload. */
const MAX_FILES = 50_000;
const MAX_BYTES = 2 ** 30;

interface Rules {
  rules: IgnoreRules;
  /** The folder that they are for, with a `/` at its end; empty for the root. */
  below: string;
}

/**
 * The files of a project that are deployed: all but what .gitignore and .dockerignore leave out.
 *
 * @throws CommandError when they are too many or too large
 */
export async function listSource(folder: string): Promise<SourceFiles> {
  const found: SourceFiles = { paths: [], bytes: 0, links: [] };
  const docker = await rulesIn(folder, "", ".dockerignore");
  await walk(folder, "", docker, found);
  return found;
}

async function walk(folder: string, below: string, before: Rules[], found: SourceFiles): Promise<void> {
  const rules = [...before, ...(await rulesIn(folder, below, ".gitignore"))];
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = `${below}${entry.name}`;
    if (NEVER_DEPLOYED.test(entry.name) || isLeftOut(path, entry, rules)) continue;
    if (entry.isSymbolicLink()) found.links.push(path);
    else if (entry.isDirectory()) await walk(folder, `${path}/`, rules, found);
    else if (entry.isFile()) await take(folder, path, found);
  }
}

async function take(folder: string, path: string, found: SourceFiles): Promise<void> {
  found.paths.push(path);
  found.bytes += (await stat(join(folder, path))).size;
  if (found.paths.length > MAX_FILES || found.bytes > MAX_BYTES)
    throw new CommandError(
      `${folder} holds more than ${MAX_FILES} files or 1 GB: leave out what is not needed with a .dockerignore.`,
    );
}

/** The last that says anything decides: deeper files come after those above. */
function isLeftOut(path: string, entry: Dirent, rules: readonly Rules[]): boolean {
  let isOut = false;
  for (const { rules: own, below } of rules)
    isOut = own.leavesOut(path.slice(below.length), entry.isDirectory()) ?? isOut;
  return isOut;
}

async function rulesIn(folder: string, below: string, name: ".gitignore" | ".dockerignore"): Promise<Rules[]> {
  const text = await readFile(join(folder, below, name), "utf8").catch(() => undefined);
  return text === undefined ? [] : [{ rules: readIgnoreRules(text, name === ".gitignore" ? "git" : "docker"), below }];
}
