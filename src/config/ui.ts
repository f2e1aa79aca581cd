import { relative, resolve, sep } from "node:path";
import { ConfigError } from "../platform/errors.ts";
import { isObject } from "../platform/lib/json/json.ts";

/** The name under which a failed build of the UI components is listed among the load failures of the graphs. */
export const UI = "UI components";

/**
 * Reads `ui` and `ui_config` of langgraph.json. Returns undefined if the project has no components.
 *
 * @throws ConfigError
 */
export function readUi(ui: unknown, ui_config: unknown, project_dir: string, config_file: string) {
  const wrong = (remedy: string) => new ConfigError(`${config_file}: ${remedy}.`);
  if (ui !== undefined && ui !== null && !isObject(ui))
    throw wrong('ui must map graph names to modules, for example {"agent": "./ui.tsx"}');
  const { shared = [] } = isObject(ui_config) ? ui_config : {};
  if (!Array.isArray(shared) || !shared.every((name) => typeof name === "string" && name !== ""))
    throw wrong('ui_config.shared must be a list of package names, such as ["recharts"]');
  const modules = Object.entries(ui ?? {}).map(([namespace, path]): [string, string] => {
    if (!/^[\w.~-]+$/.test(namespace) || /^\.+$/.test(namespace))
      throw wrong(
        `ui.${namespace}: the name may contain only letters, digits, "_", "-", "." and "~", and must contain at least one character other than "."`,
      );
    const module = typeof path === "string" && path !== "" ? relative(project_dir, resolve(project_dir, path)) : "..";
    if (module.split(sep)[0] === "..")
      throw wrong(`ui.${namespace} must be the path of a module in ${project_dir}, but is ${JSON.stringify(path)}`);
    return [namespace, `./${module.replaceAll(sep, "/")}`];
  });
  return modules.length === 0 ? undefined : { modules: Object.fromEntries(modules), shared: shared as string[] };
}
