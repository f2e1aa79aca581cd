import { cell } from "./methods-page.ts";

/** `no effect`: there is nothing that it could change. `warning`: selects something that Threadmill does not need. `refused`: see {@link FIELDS}. */
type FieldStatus = "works" | "no effect" | "warning" | "refused";

const NO_IMAGES = "Threadmill does not build such images: change your own Dockerfile.";
const NO_PYTHON = "Hooks in Python are supported for authentication and encryption only.";

/**
 * The fields of langgraph.json, with a reason for each that has no effect. A row is about all fields within it. Tests compare the rows
 * with the fields that the program knows and with those of the official command line. `serve` does not start with a field that is
 * refused, and `dev` prints a warning.
 */
export const FIELDS: Record<string, [FieldStatus, string]> = {
  $schema: ["no effect", "For editors."],
  "graphs.*.path": ["works", "See [Graphs](graphs.md) and [Python graphs](python.md)."],
  "graphs.*.description": ["works", "The description of the default assistant."],
  env: ["works", "See [Configuration](configuration.md#langgraphjson)."],
  dependencies: [
    "works",
    "For Python graphs: folders to import from, and packages that a deployment installs. Node.js resolves the packages of JavaScript graphs.",
  ],
  node_version: ["works", "The program does not start with an earlier version of Node.js."],
  python_version: ["works", "See [Python graphs](python.md#interpreter)."],
  api_version: ["warning", "Selects a version of the other servers."],
  image_distro: ["warning", "Selects an image of the other servers."],
  pip_installer: ["works", "In deployments: see [Python graphs](python.md#deployments)."],
  keep_pkg_tools: ["warning", "Concerns the Python tools in an image of the other servers."],
  pip_config_file: ["refused", "Set the variables of pip, such as PIP_INDEX_URL, as secrets of the deployment."],
  source: ["refused", "Selects a project within a workspace of uv: deploy the folder of the project."],
  base_image: ["refused", NO_IMAGES],
  dockerfile_lines: ["refused", NO_IMAGES],
  docker_compose_file: ["refused", "Threadmill does not start other containers."],
  node_loader: ["refused", "Threadmill selects how TypeScript is loaded: see [Graphs](graphs.md)."],
  _INTERNAL_docker_tag: ["refused", "Internal to the official command line."],

  "http.app": ["works", "See [Custom routes](custom-routes.md)."],
  "http.middleware_order": ["works", "See [Custom routes](custom-routes.md)."],
  "http.enable_custom_route_auth": ["works", "See [Custom routes](custom-routes.md)."],
  "http.cors": ["works", "`allow_credentials` must be false: see [Web pages](security.md#web-pages)."],
  "http.configurable_headers": ["works", ""],
  "http.logging_headers": ["works", ""],
  "http.mount_prefix": ["works", ""],
  "http.disable_assistants": ["works", ""],
  "http.disable_threads": ["works", ""],
  "http.disable_runs": ["works", "Includes crons, webhook deliveries and the AG-UI endpoint."],
  "http.disable_store": ["works", ""],
  "http.disable_meta": ["works", ""],
  "http.disable_webhooks": ["works", ""],
  "http.disable_ui": ["works", ""],
  "http.disable_mcp": ["works", ""],
  "http.disable_a2a": ["works", ""],

  webhooks: ["works", "See [Webhooks](webhooks.md#urls-and-headers)."],
  "store.index.embed": [
    "works",
    "A function of the project, or a provider and a model. See [Store](store.md#semantic-search).",
  ],
  "store.index.dims": ["works", ""],
  "store.index.fields": ["works", ""],
  "store.ttl": ["works", "See [Store](store.md#time-to-live)."],
  "checkpointer.ttl": ["works", "See [Threads](threads.md#rules)."],
  "checkpointer.path": ["refused", "Checkpoints are stored in the database of the service."],
  "checkpointer.backend": ["refused", "Checkpoints are stored in the database of the service."],
  "checkpointer.serde": ["refused", `Concerns Python types. ${NO_PYTHON}`],

  "auth.path": ["works", "See [Custom authentication](custom-auth.md)."],
  "auth.cache": ["works", "See [Custom authentication](custom-auth.md#cache)."],
  "auth.disable_studio_auth": ["no effect", "Studio has no special access, so it is always disabled."],
  "auth.openapi": ["refused", "The OpenAPI document describes the authentication of Threadmill only."],
  "auth.allow_langsmith_api_keys": ["refused", "Threadmill does not check keys of LangSmith."],
  "encryption.path": [
    "works",
    "Python only, also for projects in JavaScript, whose SDK has no such class: see [Encryption by the project](security.md#encryption-by-the-project).",
  ],
  "priority.path": ["refused", `The official hooks exist for Python graphs only. ${NO_PYTHON}`],

  "ui.*": ["works", "Requires the package `@langchain/langgraph-ui` in the project."],
  "ui_config.shared": ["works", ""],
};

/** The row of a field: its own, or that of a field that contains it. */
export function rowOf(field: string): [FieldStatus, string] | undefined {
  const row = Object.entries(FIELDS).find(([path]) => {
    const named = path.replace(".*", "");
    return [path, named].some((name) => field === name || field.startsWith(`${name}.`));
  });
  return row?.[1];
}

const STATUS: Record<FieldStatus, string> = {
  works: "works",
  "no effect": "accepted, nothing to do",
  warning: "accepted with a warning, no effect",
  refused: "refused",
};

const nameOf = (path: string): string => path.replace(".*", ".<name>");

export const fieldsSection = (): string => `## Fields of langgraph.json

[Configuration](configuration.md#langgraphjson) describes the fields that have an effect. If a field is refused, \`serve\` names it and does
not start, and \`dev\` prints a warning. Fields without effect that templates contain cause a warning in both.

| Field | Status | Note |
|---|---|---|
${Object.entries(FIELDS)
  .map(([path, [status, note]]) => `| \`${nameOf(path)}\` | ${STATUS[status]} | ${cell(note)} |`)
  .join("\n")}
`;
