import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../../platform/lib/replace-file.ts";

interface PulledImage {
  id: string;
  /** Local names of the image. */
  names: readonly string[];
}

const IMAGE_FILE = "image.json";

/**
 * Records which images were pulled for which deployments, so that an image is removed with its last deployment. An image
 * without a record is kept.
 */
export class PulledImages {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async add(artifact: string, image: PulledImage, deployment_id: string): Promise<void> {
    const folder = this.#folderOf(artifact);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = join(folder, IMAGE_FILE);
    await replaceFile(file, JSON.stringify(image), { temporary_file: `${file}.${deployment_id}` });
    await writeFile(join(folder, deployment_id), "");
  }

  /** Adds a deployment to the record of an image. Does nothing for images that were not pulled, which have no record. */
  async addUser(artifact: string, deployment_id: string): Promise<void> {
    await writeFile(join(this.#folderOf(artifact), deployment_id), "").catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  }

  /** Removes a deployment from the records. Calls `remove` for the images that no other deployment uses. */
  async release(deployment_id: string, remove: (image: PulledImage) => Promise<void>): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const folder = join(this.#folder, name);
      const users = (await readdir(folder)).filter((file) => !file.startsWith(IMAGE_FILE));
      if (!users.includes(deployment_id)) continue;
      if (users.length === 1) {
        const image = await readImage(join(folder, IMAGE_FILE));
        if (image) await remove(image);
        await rm(folder, { recursive: true, force: true });
      } else await rm(join(folder, deployment_id), { force: true });
    }
  }

  #folderOf(artifact: string): string {
    return join(this.#folder, createHash("sha256").update(artifact).digest("hex"));
  }
}

/** Undefined if the file is missing or cut off, as after a full disk: the image is then kept. */
async function readImage(file: string): Promise<PulledImage | undefined> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as PulledImage;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
