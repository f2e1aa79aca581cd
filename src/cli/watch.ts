import { once } from "node:events";
import { relative } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import { type Config, type Flags, readConfig } from "../config/config.ts";
import type { Threadmill } from "../main.ts";
import type { Log } from "../platform/lib/log.ts";

/** Editors write a file in several steps; changes within this time count as one. */
const SETTLE_MS = 150;

const SOURCE = /\.([cm]?[jt]sx?|json)$|(^|\/)\.env[^/]*$/;
const IGNORED = /(^|[\\/])(node_modules|dist|\.git|\.threadmill)([\\/]|$)/;

/**
 * Loads the graphs anew when a source file of the project changes. Runs that are under way end with the old ones.
 * Resolves when the files are being watched.
 */
export async function watchGraphs(config: Config, flags: Flags, service: Threadmill, log: Log): Promise<FSWatcher> {
  let timer: NodeJS.Timeout | undefined;
  const reload = async () => {
    try {
      const failures = Object.entries(await service.reload(readConfig("dev", flags, process.env)));
      if (failures.length === 0) console.log("Graphs reloaded.");
      for (const [graph_id, reason] of failures)
        console.error(`The graph "${graph_id}" could not be loaded: ${reason}.`);
    } catch (error) {
      // A half-written langgraph.json: the graphs of before stay.
      log.error({ error: (error as Error).message }, "the graphs could not be reloaded");
    }
  };
  const watcher = watch(config.project_dir, {
    ignoreInitial: true,
    ignored: (path, stats) =>
      IGNORED.test(relative(config.project_dir, path)) || (stats?.isFile() === true && !SOURCE.test(path)),
  });
  watcher.on("all", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void reload(), SETTLE_MS);
  });
  await once(watcher, "ready");
  return watcher;
}
