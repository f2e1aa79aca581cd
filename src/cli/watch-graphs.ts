import { relative, sep } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import { type Config, type Flags, readConfig } from "../config/config.ts";
import { ENCRYPTION, HTTP_APP } from "../config/http.ts";
import { UI } from "../config/ui.ts";
import type { Threadmill } from "../main.ts";
import type { Log } from "../platform/lib/log.ts";
import { printError } from "./command.ts";

/** Changes within this time cause a single reload, because editors save a file in several steps. */
const DEBOUNCE_MS = 150;

const SOURCE = /\.([cm]?[jt]sx?|json|css|py|toml)$|(^|\/)(\.env|requirements)[^/]*$/;
const IGNORED = /(^|[\\/])(node_modules|dist|\.git|\.threadmill|\.venv|venv|__pycache__)([\\/]|$)/;

/** Reloads the graphs when a source file changes. Active runs finish with the old graphs. Resolves when the watcher is ready. */
export async function watchGraphs(config: Config, flags: Flags, service: Threadmill, log: Log): Promise<FSWatcher> {
  let timer: NodeJS.Timeout | undefined;
  let last: Promise<void> = Promise.resolve();
  const reload = async () => {
    try {
      const failures = await service.reload(readConfig("dev", flags, process.env));
      if (Object.keys(failures).length === 0) console.log("Graphs reloaded.");
      else printLoadFailures(failures);
    } catch (error) {
      // The loaded graphs stay in use, for example when langgraph.json is only partly written.
      log.error({ error: (error as Error).message }, "graph reload failed");
    }
  };
  const data = relative(config.project_dir, config.data_dir);
  const isData = (path: string) => data !== "" && (path === data || path.startsWith(`${data}${sep}`));
  const isIgnored = (path: string) => IGNORED.test(path) || isData(path);
  const watcher = watch(config.project_dir, {
    ignoreInitial: true,
    // A folder of another user, such as that of a database.
    ignorePermissionErrors: true,
    ignored: (path, stats) =>
      isIgnored(relative(config.project_dir, path)) || (stats?.isFile() === true && !SOURCE.test(path)),
  });
  // For example because the system permits no more watches.
  watcher.on("error", (error) => log.warn({ error: (error as Error).message }, "some files are not watched"));
  watcher.on("all", () => {
    clearTimeout(timer);
    // One after the other: two at once could leave the older version in use.
    timer = setTimeout(() => {
      last = last.then(reload);
    }, DEBOUNCE_MS);
  });
  await new Promise<void>((resolve) => watcher.once("ready", resolve).once("error", () => resolve()));
  return watcher;
}

export function printLoadFailures(failures: Record<string, string>): void {
  for (const [name, reason] of Object.entries(failures)) printError(loadFailure(name, reason));
}

function loadFailure(name: string, reason: string): string {
  if (name === HTTP_APP)
    return `http.app could not be loaded: ${reason}. Requests to its routes are rejected until the error is corrected.`;
  if (name === ENCRYPTION) return `${reason} Until the error is corrected, requests that encrypt or decrypt data fail.`;
  if (name === UI)
    return `The UI components could not be built: ${reason}. Requests for them are rejected until the error is corrected.`;
  return `The graph "${name}" could not be loaded: ${reason}. New runs of this graph are rejected until the error is corrected.`;
}
