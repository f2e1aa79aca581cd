import { rename, writeFile } from "node:fs/promises";

export interface ReplaceOptions {
  mode?: number;
  /** Must differ between concurrent writers of a file. */
  temporary_file?: string;
}

/** Replaces a file atomically, but without fsync: for files that can be recreated. Encryption keys are written by KeyFile instead. */
export async function replaceFile(
  file: string,
  text: string,
  { mode = 0o600, temporary_file = `${file}.new` }: ReplaceOptions = {},
): Promise<void> {
  await writeFile(temporary_file, text, { mode });
  await rename(temporary_file, file);
}
