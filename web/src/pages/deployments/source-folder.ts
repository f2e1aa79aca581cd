import { createTarPacker } from "modern-tar";
import {
  type IgnoreRules,
  NEVER_DEPLOYED,
  readIgnoreRules,
} from "../../../../src/control-plane/contract/ignore-rules.ts";

/** A file of a folder that somebody chose. */
export interface SourceFile {
  /** Relative to the folder, with `/`. */
  path: string;
  file: File;
}

interface Rules {
  rules: IgnoreRules;
  /** The folder that they are for, with a `/` at its end; empty for the root. */
  below: string;
}

/** What is deployed of a chosen folder: all but what .gitignore and .dockerignore leave out, as `threadmill deploy` has it. */
export async function sourceOf(chosen: readonly File[]): Promise<SourceFile[]> {
  // The first part of the path is the name of the folder itself.
  const files = chosen.map((file) => ({ path: file.webkitRelativePath.split("/").slice(1).join("/"), file }));
  const rules = await rulesIn(files);
  return files.filter(({ path }) => !isLeftOut(path, rules)).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Those of .dockerignore first, then .gitignore from the root downwards: the last that says anything decides. */
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

/** What is in a folder that is left out is left out with it. */
function isLeftOut(path: string, rules: readonly Rules[]): boolean {
  const names = path.split("/");
  return names.some((name, i) => {
    if (NEVER_DEPLOYED.test(name)) return true;
    const part = names.slice(0, i + 1).join("/");
    let isOut = false;
    for (const { rules: own, below } of rules)
      if (part.startsWith(below)) isOut = own.leavesOut(part.slice(below.length), i < names.length - 1) ?? isOut;
    return isOut;
  });
}

/**
 * Packs files into a tar.gz.
 *
 * @param onProgress told how many bytes of the files are packed
 */
export async function pack(
  files: readonly SourceFile[],
  { onProgress, signal }: { onProgress(bytes: number): void; signal: AbortSignal },
): Promise<Blob> {
  const { readable, controller } = createTarPacker();
  const packed = new Response(readable.pipeThrough(new CompressionStream("gzip"), { signal })).blob();
  // Reported where it is awaited; until then it is nobody's failure.
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
