import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { promisify } from "node:util";
import type { Log } from "../../platform/lib/log.ts";

export interface UiModules {
  /** Module paths by namespace, relative to the project folder. The default export of a module maps names to React components. */
  modules: Readonly<Record<string, string>>;
  /** Packages that the page provides, besides React. */
  shared: readonly string[];
}

export interface UiBundlesOptions {
  project_dir: string;
  env: Readonly<Record<string, string>>;
  log: Log;
}

export interface UiFile {
  name: string;
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const PACKAGE = "@langchain/langgraph-ui";

const BUILD_TIMEOUT_MS = 120_000;

/** Maximum length of a failure message. */
const MAX_REASON = 2_000;

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

type Bundles = ReadonlyMap<string, readonly UiFile[]>;

/**
 * Bundles of the React components in `ui` of langgraph.json, in memory. The bundler of the official server builds them in a process of its
 * own, because the plugins of the bundler would block this thread.
 */
export class UiBundles {
  readonly #options: UiBundlesOptions;
  readonly #stopping = new AbortController();
  #bundles: Promise<Bundles>;

  constructor(options: UiBundlesOptions, ui: UiModules | undefined) {
    this.#options = options;
    this.#bundles = this.#start(ui);
  }

  /** Resolves when the build has ended, to the reason for its failure, or to undefined if it succeeded. */
  get failure(): Promise<string | undefined> {
    return this.#bundles.then(
      () => undefined,
      (error) => (error as Error).message,
    );
  }

  /** Returns the files of a namespace; undefined if langgraph.json has no such namespace. Rejects if the build failed. */
  async files(namespace: string): Promise<readonly UiFile[] | undefined> {
    return (await this.#bundles).get(namespace);
  }

  /** Builds the bundles again. Requests wait for the result. */
  reload(ui: UiModules | undefined): void {
    this.#bundles = this.#start(ui);
  }

  stop(): void {
    this.#stopping.abort();
  }

  #start(ui: UiModules | undefined): Promise<Bundles> {
    const bundles = ui ? this.#build(ui) : Promise.resolve(new Map());
    // Requests and `failure` report the error.
    bundles.catch(() => undefined);
    return bundles;
  }

  async #build({ modules, shared }: UiModules): Promise<Bundles> {
    const { project_dir, env, log } = this.#options;
    const started_at = performance.now();
    const program = bundlerOf(project_dir);
    const output = await mkdtemp(join(tmpdir(), "threadmill-ui-"));
    try {
      await promisify(execFile)(process.execPath, [program, "build", "--output", output], {
        cwd: project_dir,
        env: { ...env, LANGGRAPH_UI: JSON.stringify(modules), LANGGRAPH_UI_CONFIG: JSON.stringify({ shared }) },
        timeout: BUILD_TIMEOUT_MS,
        signal: this.#stopping.signal,
      }).catch((error: Error & { stderr?: string }) => {
        throw new Error((error.stderr?.trim() || error.message).slice(0, MAX_REASON));
      });
      const names = Object.keys(modules);
      const bundles = await Promise.all(names.map((name) => readBundle(join(output, "public", name))));
      log.info(
        { modules: names.length, duration_ms: Math.round(performance.now() - started_at) },
        "UI components built",
      );
      return new Map(names.map((name, i) => [name, bundles[i] as UiFile[]]));
    } finally {
      await rm(output, { recursive: true, force: true });
    }
  }
}

/** Returns the path of the bundler's command-line program, which is installed in the project. */
function bundlerOf(project_dir: string): string {
  try {
    return join(dirname(createRequire(join(project_dir, "langgraph.json")).resolve(PACKAGE)), "cli.mjs");
  } catch {
    throw new Error(`the package ${PACKAGE} is not installed in the project: run "npm install ${PACKAGE}"`);
  }
}

async function readBundle(folder: string): Promise<UiFile[]> {
  const names = (await readdir(folder)).sort();
  return Promise.all(
    names.map(async (name) => ({
      name,
      type: TYPES[extname(name)] ?? "application/octet-stream",
      bytes: new Uint8Array(await readFile(join(folder, name))),
    })),
  );
}
