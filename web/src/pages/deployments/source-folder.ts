import { createTarPacker } from "modern-tar";
import {
  type IgnoreRules,
  NEVER_DEPLOYED,
  readIgnoreRules,
} from "../../../../src/control-plane/contract/ignore-rules.ts";

/** A file of the selected folder. */
export interface SourceFile {
  /** Relative to the folder, with `/` as the separator. */
  path: string;
  file: File;
}

interface Rules {
  rules: IgnoreRules;
  /** The folder that the rules apply to, with a trailing `/`; empty for the root. */
  below: string;
}

/** The files of a folder that are deployed: all except those that .gitignore and .dockerignore exclude, like `threadmill deploy`. */
export async function sourceOf(chosen: readonly File[]): Promise<SourceFile[]> {
  // The first part of the path is the name of the folder itself.
  const files = chosen.map((file) => ({ path: file.webkitRelativePath.split("/").slice(1).join("/"), file }));
  const rules = await rulesIn(files);
  return files.filter(({ path }) => !isExcluded(path, rules)).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The rules of .dockerignore first, then of each .gitignore from the root down. The last rule that matches decides. */
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

/** Excluding a folder excludes its content. */
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
 * Packs files into a tar.gz.
 *
 * @param onProgress called with the number of packed bytes
 */
export async function pack(
  files: readonly SourceFile[],
  { onProgress, signal }: { onProgress(bytes: number): void; signal: AbortSignal },
): Promise<Blob> {
  const { readable, controller } = createTarPacker();
  const packed = new Response(readable.pipeThrough(new CompressionStream("gzip"), { signal })).blob();
  // Prevents an unhandled rejection: the caller awaits the promise at the end.
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
