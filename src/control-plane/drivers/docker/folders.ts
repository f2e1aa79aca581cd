import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { dataRoot } from "../deployment-data.ts";

/** The files and folders of the Docker driver, below the folder of the control plane. */
export interface Folders {
  /** File with the service ID. Created with the first container. */
  service_id: string;
  /** Folder of files that record up to which position the log of each container is stored. */
  positions: string;
  pulled: string;
  /**
   * Parent of the deployments' data folders. If the service is root, these are world-writable (each image sets its own user), but only
   * root can enter the driver's folder. Otherwise, the process driver uses the same folders, because all processes have the same user.
   */
  data: string;
  /** Location of the data folders in earlier versions. */
  legacy_data: string;
}

export const foldersIn = (control_dir: string): Folders => ({
  service_id: join(control_dir, "docker", "service-id"),
  positions: join(control_dir, "docker", "positions"),
  pulled: join(control_dir, "docker", "pulled"),
  data: process.getuid?.() === 0 ? join(control_dir, "docker", "data") : dataRoot(control_dir),
  legacy_data: dataRoot(control_dir),
});

/**
 * Returns the ID that marks the containers of this service on an engine that other services may also use. The path of the data folder
 * is not unique, because services can run in containers. Returns undefined before the first start of a container.
 */
export const findServiceId = (file: string): Promise<string | undefined> =>
  readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });

/** Returns the service ID. Creates it atomically if it does not exist, because it must never change. */
export async function ensureServiceId(file: string): Promise<string> {
  const found = await findServiceId(file);
  if (found !== undefined) return found;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomUUID()}`;
  await writeFile(temporary, randomUUID(), { mode: 0o600 });
  await link(temporary, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(temporary);
  return readFile(file, "utf8");
}
