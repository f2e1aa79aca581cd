import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * By what the containers of this data folder are told from those of other services on the same engine, which may have a folder of
 * the same path in a container of their own. Undefined as long as nothing was started.
 */
export const findServiceId = (file: string): Promise<string | undefined> =>
  readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });

/** Whole or not at all, and never another one after that. */
export async function ensureServiceId(file: string): Promise<string> {
  const found = await findServiceId(file);
  if (found !== undefined) return found;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const made = `${file}.${randomUUID()}`;
  await writeFile(made, randomUUID(), { mode: 0o600 });
  await link(made, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(made);
  return readFile(file, "utf8");
}
