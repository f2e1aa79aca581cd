import { rename, writeFile } from "node:fs/promises";

export interface ReplaceOptions {
  mode?: number;
  /** Must differ between writers that may replace the file at the same time. */
  temporary_file?: string;
}

/**
 * Replaces a file as a whole: a reader finds the old text or the new one, also after a crash of the process. There is no fsync, so a
 * power failure may lose the new text: use it for files that can be made again. Encryption keys need more (access/encryption/key-file.ts
 * syncs the file and its folder and keeps the owner or fails, which the package write-file-atomic does not).
 */
export async function replaceFile(
  file: string,
  text: string,
  { mode = 0o600, temporary_file = `${file}.new` }: ReplaceOptions = {},
): Promise<void> {
  await writeFile(temporary_file, text, { mode });
  await rename(temporary_file, file);
}
