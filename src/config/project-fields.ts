import { isObject, type JsonObject } from "../platform/lib/json/json.ts";

/** Fields that have an effect, or none to have; an object says which of the fields within it do. */
interface Known {
  [field: string]: true | Known;
}

/** Any name; the value may be a text, too. */
const ANY = "*";

const KNOWN: Known = {
  $schema: true,
  graphs: { [ANY]: { path: true, description: true } },
  env: true,
  http: {
    mount_prefix: true,
    // Fields within it are checked where they are read.
    cors: true,
    // What these switch off is not there.
    disable_store: true,
    disable_mcp: true,
    disable_a2a: true,
    disable_ui: true,
    disable_webhooks: true,
  },
  // There is no way in for Studio that this would close.
  auth: { disable_studio_auth: true },
  // They choose among runtimes and images of other servers, and cannot change what a graph does here.
  dependencies: true,
  node_version: true,
  python_version: true,
  api_version: true,
  image_distro: true,
  pip_installer: true,
  keep_pkg_tools: true,
};

/** Paths of the fields of a langgraph.json that say something and have no effect, such as `http.app`. */
export const fieldsWithoutEffect = (project: JsonObject): string[] => unknownIn(project, KNOWN, "");

function unknownIn(value: JsonObject, known: Known, path: string): string[] {
  return Object.entries(value).flatMap(([name, part]) => {
    const here = known[name] ?? known[ANY];
    if (here === true || saysNothing(part)) return [];
    if (known[name] === undefined && here && !isObject(part)) return [];
    return here && isObject(part) ? unknownIn(part, here, `${path}${name}.`) : [path + name];
  });
}

/** As templates leave them: `[]`, `{}`, null, false and the empty text ask for nothing. */
const saysNothing = (value: unknown): boolean =>
  !value || (typeof value === "object" && Object.keys(value).length === 0);
