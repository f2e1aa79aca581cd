import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

const ROOT = join(import.meta.dirname, "..");
const OUT = join(ROOT, "dist/web");

/** The limit of the JavaScript of the first page, in bytes of gzip. */
const FIRST_LOAD_LIMIT_BYTES = 250_000;

/** The inputs of the build. */
const SOURCES = ["web/**/*.{ts,tsx,css,html,js}", "src/*/contract/**/*.ts", "package-lock.json"];

/**
 * Builds the web app into dist/web, unless the output is newer than all inputs (`--force` always builds). It builds into a temporary
 * folder and renames it, so that a server that reads dist/web never finds a partial build.
 */
async function build(): Promise<void> {
  if (!process.argv.includes("--force") && isFresh()) return;
  const vite = await import("vite").catch(() => undefined);
  // An installation without development dependencies: the npm package contains the built app.
  if (!vite)
    return console.warn("The web app was not built: install the development dependencies (npm install --include=dev).");
  // Tests set another value, with which React is three times as large and logs warnings.
  process.env.NODE_ENV = "production";
  const staging = `${OUT}-${process.pid}`;
  try {
    await vite.build({
      configFile: join(import.meta.dirname, "vite.config.ts"),
      logLevel: "warn",
      build: { outDir: staging },
    });
    const bytes = firstLoadBytes(staging);
    if (bytes > FIRST_LOAD_LIMIT_BYTES)
      throw new Error(
        `The first page loads ${bytes} bytes of JavaScript (gzip); at most ${FIRST_LOAD_LIMIT_BYTES} are allowed.`,
      );
    compress(staging);
    publish(staging);
    console.log(`Built the web app: ${Math.round(bytes / 1000)} KB of JavaScript (gzip) for the first page.`);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** Concurrent builds, as of test suites, have the same output: the first rename wins. */
function publish(staging: string): void {
  rmSync(OUT, { recursive: true, force: true });
  try {
    renameSync(staging, OUT);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}

function isFresh(): boolean {
  const index = join(OUT, "index.html");
  if (!existsSync(index)) return false;
  const built_at = statSync(index).mtimeMs;
  return globSync(SOURCES, { cwd: ROOT }).every((file) => statSync(join(ROOT, file)).mtimeMs <= built_at);
}

interface Chunk {
  file: string;
  isEntry?: boolean;
  imports?: string[];
}

/** The size of the entry and its static imports. Lazily loaded pages do not count. */
function firstLoadBytes(folder: string): number {
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as Record<string, Chunk>;
  const needed = new Set(Object.keys(manifest).filter((name) => manifest[name]?.isEntry));
  for (const name of needed) for (const imported of manifest[name]?.imports ?? []) needed.add(imported);
  const size = (name: string) => gzipSync(readFileSync(join(folder, (manifest[name] as Chunk).file))).length;
  return [...needed].reduce((sum, name) => sum + size(name), 0);
}

const COMPRESSIBLE = new Set([".js", ".css", ".svg"]);

/** Compresses files at build time instead of per request. */
function compress(folder: string): void {
  for (const file of globSync("**/*", { cwd: folder })) {
    if (!COMPRESSIBLE.has(extname(file))) continue;
    const path = join(folder, file);
    const content = readFileSync(path);
    writeFileSync(`${path}.br`, brotliCompressSync(content));
    writeFileSync(`${path}.gz`, gzipSync(content));
  }
}

await build();
