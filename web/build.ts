import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

const ROOT = join(import.meta.dirname, "..");
const OUT = join(ROOT, "dist/web");

/** What a browser may have to load before it shows the first page, in bytes of gzip. */
const FIRST_LOAD_LIMIT_BYTES = 250_000;

/** What the build reads. */
const SOURCES = ["web/**/*.{ts,tsx,css,html,js}", "src/*/contract/**/*.ts", "package-lock.json"];

/**
 * Builds the web app into dist/web, unless what is there is newer than all of its sources (`--force` builds anyway). It is built
 * beside and then moved, so that whoever reads dist/web meanwhile finds a whole one.
 */
async function build(): Promise<void> {
  if (!process.argv.includes("--force") && isFresh()) return;
  const vite = await import("vite").catch(() => undefined);
  // An installation without development dependencies: the package brings the app, and a server without it says so.
  if (!vite) return console.warn("The web app is not built: that needs the development dependencies.");
  // In a test it is another one, and React would come with its warnings and three times the size.
  process.env.NODE_ENV = "production";
  const beside = `${OUT}-${process.pid}`;
  try {
    await vite.build({
      configFile: join(import.meta.dirname, "vite.config.ts"),
      logLevel: "warn",
      build: { outDir: beside },
    });
    const bytes = firstLoadBytes(beside);
    if (bytes > FIRST_LOAD_LIMIT_BYTES)
      throw new Error(
        `The first page loads ${bytes} bytes of JavaScript (gzip); at most ${FIRST_LOAD_LIMIT_BYTES} are allowed.`,
      );
    compress(beside);
    putInPlace(beside);
    console.log(`Built the web app: ${Math.round(bytes / 1000)} KB of JavaScript (gzip) for the first page.`);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

/** Several may build at once, as suites of tests do: they build the same, so whoever comes first is as good as the last. */
function putInPlace(beside: string): void {
  rmSync(OUT, { recursive: true, force: true });
  try {
    renameSync(beside, OUT);
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

/** The entry and what it imports; what is imported later, page by page, does not count. */
function firstLoadBytes(folder: string): number {
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as Record<string, Chunk>;
  const needed = new Set(Object.keys(manifest).filter((name) => manifest[name]?.isEntry));
  for (const name of needed) for (const imported of manifest[name]?.imports ?? []) needed.add(imported);
  const size = (name: string) => gzipSync(readFileSync(join(folder, (manifest[name] as Chunk).file))).length;
  return [...needed].reduce((sum, name) => sum + size(name), 0);
}

const COMPRESSIBLE = new Set([".js", ".css", ".svg"]);

/** Compressed once here, not with each request. */
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
