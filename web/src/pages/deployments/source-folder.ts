import { createTarPacker } from "modern-tar";
import {
  type IgnoreRules,
  NEVER_DEPLOYED,
  readIgnoreRules,
} from "../../../../src/control-plane/contract/ignore-rules.ts";

/** A file in the selected folder. */
export interface SourceFile {
  /** Path relative to the selected folder, with `/` as the separator. */
  path: string;
  file: File;
}

interface Rules {
  rules: IgnoreRules;
  /** Folder that the rules apply to, with a trailing `/`. Empty for the root folder. */
  below: string;
}

/** Returns the files to deploy. Like `threadmill deploy`, excludes the files that .gitignore and .dockerignore match. */
export async function sourceOf(chosen: readonly File[]): Promise<SourceFile[]> {
  // `webkitRelativePath` starts with the name of the selected folder.
  const files = chosen.map((file) => ({ path: file.webkitRelativePath.split("/").slice(1).join("/"), file }));
  const rules = await rulesIn(files);
  return files.filter(({ path }) => !isExcluded(path, rules)).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Reads the rules of .dockerignore, then of each .gitignore from the root down. The last matching rule decides. */
async function rulesIn(files: readonly SourceFile[]): Promise<Rules[]> {
  const docker = files.filter(({ path }) => path === ".dockerignore");
  const git = files
    .filter(({ path }) => /(^|\/)\.gitignore$/.test(path) && !path.split("/").some((name) => NEVER_DEPLOYED.test(name)))
    .sort((a, b) => a.path.length - b.path.length);
  return Promise.all(
    [...docker, ...git].map(async ({ path, file }) => ({
      rules: readIgnoreRules(await file.text(), path === ".dockerignore" ? "docker" : "git"),
      below: path.slice(0, path.lastIndexOf("/") + 1),
    })),
  );
}

/** Whether a file is excluded, by the rules or because it is never deployed. If a folder is excluded, so are all files in it. */
function isExcluded(path: string, rules: readonly Rules[]): boolean {
  const names = path.split("/");
  return names.some((name, i) => {
    if (NEVER_DEPLOYED.test(name)) return true;
    const part = names.slice(0, i + 1).join("/");
    let isOut = false;
    for (const { rules: own, below } of rules)
      if (part.startsWith(below)) isOut = own.excludes(part.slice(below.length), i < names.length - 1) ?? isOut;
    return isOut;
  });
}

/**
 * Packs files into a tar.gz archive.
 *
 * @param onProgress called with the total size of the files packed so far
 */
export async function pack(
  files: readonly SourceFile[],
  { onProgress, signal }: { onProgress(bytes: number): void; signal: AbortSignal },
): Promise<Blob> {
  const { readable, controller } = createTarPacker();
  const packed = new Response(readable.pipeThrough(new CompressionStream("gzip"), { signal })).blob();
  // Marks the rejection as handled: the caller awaits this promise only after all files are written.
  packed.catch(() => undefined);
  let bytes = 0;
  for (const { path, file } of files) {
    signal.throwIfAborted();
    const body = controller.add({ name: path, size: file.size, mtime: new Date(file.lastModified), mode: 0o644 });
    await file.stream().pipeTo(body, { signal });
    bytes += file.size;
    onProgress(bytes);
  }
  controller.finalize();
  return packed;
}
