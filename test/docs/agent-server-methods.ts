import { methodsProject } from "../compat/agent-server-methods/project.ts";
import { type MethodTable, readTables } from "../compat/methods/outcomes.ts";
import { fieldsSection } from "./langgraph-json.ts";
import { cell, regenerate, statusOf } from "./methods-page.ts";

/**
 * The page about the clients of the agent server. `node test/docs/agent-server-methods.ts` calls all methods on a service and writes the
 * table and the page.
 */

export const COMPATIBILITY_PAGE = "docs/compatibility.md";

const INTRODUCTION = `# Agent server clients

This page lists every public method of the official clients of the agent server, and what it does with Threadmill. The clients are
\`@langchain/langgraph-sdk\` (JavaScript) and \`langgraph-sdk\` (Python). They are used unmodified: set the URL of the service, and a key if it
requires one. The methods of the package \`langsmith\` are in [LangSmith clients](compatibility-langsmith.md).

The tests call each method with real arguments, and compare the fields that the clients send with those that the service reads. This page
is generated from the result (\`node test/docs/agent-server-methods.ts\`). The statuses are:

- "works": a note names the fields without an effect, if there are any.
- "works, with limitations": the note describes them.
- "not offered": the service responds with status 404, or the client refuses the call itself.
- "refused": the service responds with status 422.
- \`–\`: the client has no such method.
`;

const GROUPS: Record<string, string> = {
  assistants: "Assistants",
  threads: "Threads",
  runs: "Runs",
  crons: "Crons",
  store: "Store",
  "~ui": "User interface",
  http: "HTTP requests",
};

/** The clients in the order of the columns. */
const CLIENTS = ["javascript", "javascript_2", "python", "python_sync"];
const REMOTE_GRAPH_CLIENTS = ["javascript_remote_graph", "python_remote_graph"];

/** The same method has one row: the names of JavaScript in camel case are those of Python in snake case. */
const keyOf = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

interface Row {
  names: Set<string>;
  outcomes: Map<string, string>;
}

function rowsOf(tables: Record<string, MethodTable>, clients: string[]): Map<string, Row> {
  const rows = new Map<string, Row>();
  for (const client of clients)
    for (const [name, outcome] of Object.entries(tables[client]?.methods ?? {})) {
      const row = rows.get(keyOf(name)) ?? { names: new Set(), outcomes: new Map() };
      rows.set(keyOf(name), row);
      row.names.add(name);
      row.outcomes.set(client, outcome);
    }
  return new Map([...rows].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A table with a row for each method and a column for each client. */
function tableOf(tables: Record<string, MethodTable>, clients: string[], rows: Row[]): string {
  const lines = rows.map(({ names, outcomes }) => {
    const statuses = clients.map((client) => {
      const outcome = outcomes.get(client);
      return outcome === undefined ? undefined : statusOf(outcome);
    });
    const notes = new Set(statuses.flatMap((status) => status?.note || []));
    return [
      [...names].map((name) => `\`${name}\``).join(", "),
      ...statuses.map((status) => status?.status ?? "–"),
      cell([...notes].join(" ")),
    ];
  });
  const header = ["Method", ...clients.map((client) => tables[client]?.client ?? client), "Note"];
  return [header, header.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const REFUSED_OPTIONS = `The service refuses options that it does not support. The values of \`onCompletion\` are \`delete\` and \`keep\`; the types of the
JavaScript client have other values.`;

const REMOTE_GRAPH = "`RemoteGraph` of `@langchain/langgraph` (JavaScript) and `langgraph` (Python).";

/** What the packages of the clients have besides methods. The tests of the named files use them. */
export const FEATURES: [feature: string, status: string, note: string, tests: string][] = [
  [
    "`Auth` of `@langchain/langgraph-sdk/auth`",
    "works",
    "`authenticate` and `on`, with all events: see [Custom authentication](custom-auth.md).",
    "test/http/custom-auth/handlers.test.ts",
  ],
  [
    "`Auth` of `langgraph_sdk` (Python)",
    "works",
    "See [Custom authentication](custom-auth.md#python).",
    "test/http/python-auth.test.ts",
  ],
  [
    "`get_client()` of `langgraph_sdk` (Python) without a URL",
    "works",
    "In graphs and in the HTTP app: see [Python graphs](python.md#calls-to-this-server).",
    "test/http/python-app.test.ts",
  ],
  [
    "`Encryption` of `langgraph_sdk` (Python)",
    "works",
    "See [Encryption by the project](security.md#encryption-by-the-project). `DecryptResult.replacement` is not stored.",
    "test/http/encryption.test.ts",
  ],
  [
    "`Priority` of `langgraph_sdk` (Python)",
    "not offered",
    "Hooks in Python are supported for authentication and encryption only.",
    "",
  ],
  ["Webhooks (`webhook` of a run or a cron)", "works", "See [Webhooks](webhooks.md).", "test/compat/js/webhooks.ts"],
  ["MCP server at `/mcp`", "works", "See [MCP](mcp.md).", "test/compat/mcp.test.ts"],
  ["A2A server at `/a2a/{assistant_id}`", "works", "See [A2A](a2a.md).", "test/compat/a2a.test.ts"],
  [
    '`streamProtocol: "v2"` and `"v2-websocket"` of the client, `ThreadStream`',
    "works",
    "See [Thread protocol](thread-protocol.md). The WebSocket of a browser cannot send a key.",
    "test/compat/js/thread-protocol.ts",
  ],
  [
    "`useStream` of `@langchain/langgraph-sdk/react` (1.15.0) in a browser",
    "works",
    "It streams runs.",
    "test/web/chat-pages.test.ts",
  ],
  [
    "`useStream` of `@langchain/react` (1.1.0) in a browser, over server-sent events and WebSockets",
    "works",
    "It uses the thread protocol.",
    "test/web/chat-pages.test.ts",
  ],
  [
    "`useStream` of `@langchain/svelte` (1.0.29) in a browser, over server-sent events and WebSockets",
    "works",
    "It uses the thread protocol.",
    "test/web/chat-pages.test.ts",
  ],
  [
    "`@langchain/vue`, `@langchain/angular`",
    "not tested",
    "They could not be installed for a test in November 2026. They use the same code for threads as the packages for React and Svelte.",
    "",
  ],
  [
    "`RemoteGraph` as a node of another graph (JavaScript, Python)",
    "works",
    "Its interrupts interrupt the other graph, and its subgraphs are streamed. RemoteGraph does not pass on the response to an interrupt: the node has to call it with `Command({ resume })`.",
    "test/compat/remote-graph.test.ts",
  ],
  [
    "Agent Chat UI, Agent Inbox, Deep Agents UI",
    "works",
    "The test sends their requests. If Agent Chat UI or Deep Agents UI marks an interrupt as resolved, LangGraph executes the node again, which asks again.",
    "test/compat/chat-uis.test.ts",
  ],
  [
    "Hosted Studio",
    "works",
    "Start the service with `--studio`. The test sends the requests that are publicly known.",
    "test/compat/chat-uis.test.ts",
  ],
  [
    "assistant-ui (`@assistant-ui/react-langgraph` 0.14.25, `@assistant-ui/react-langchain` 0.0.28)",
    "works",
    "The first streams runs, the second uses the thread protocol.",
    "test/web/chat-pages.test.ts",
  ],
  [
    "Components of the project in a page (`LoadExternalComponent` of `@langchain/langgraph-sdk/react-ui`)",
    "works",
    "Requires the package `@langchain/langgraph-ui` in the project, and `ui` in langgraph.json.",
    "test/web/ui-components.test.ts",
  ],
  [
    "`HttpAgent` of `@ag-ui/client` (1.0.0 and 0.0.59)",
    "works",
    "`POST /ag-ui/{assistant_id}`: see [AG-UI](ag-ui.md).",
    "test/compat/ag-ui.test.ts",
  ],
];

function featuresSection(): string {
  const rows = FEATURES.map(
    ([feature, status, note, test]) => `| ${feature} | ${status} | ${cell(note)} | ${test && `\`${test}\``} |`,
  );
  return `## Other features\n\n| Feature | Status | Note | Test |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}

/** The page as it must be. */
export function compatibilityPage(): string {
  const tables = readTables("agent_server");
  const rows = [...rowsOf(tables, CLIENTS)];
  const isOption = (key: string) => key.includes(" (");
  const groupOf = (key: string) => (key.includes(".") ? key.split(".")[0] : undefined);
  for (const [key] of rows)
    if (groupOf(key) && !GROUPS[groupOf(key) as string]) throw new Error(`GROUPS has no title for ${key}.`);
  const methods = (group: string | undefined) =>
    rows.filter(([key]) => groupOf(key) === group && !isOption(key)).map(([, row]) => row);
  const section = (title: string, ...texts: string[]) => `## ${title}\n\n${texts.join("\n\n")}\n`;
  return [
    INTRODUCTION,
    ...Object.entries(GROUPS).map(([group, title]) => section(title, tableOf(tables, CLIENTS, methods(group)))),
    section("Client", tableOf(tables, CLIENTS, methods(undefined))),
    section(
      "Options that are refused",
      REFUSED_OPTIONS,
      tableOf(
        tables,
        CLIENTS,
        rows.filter(([key]) => isOption(key)).map(([, row]) => row),
      ),
    ),
    section(
      "RemoteGraph",
      REMOTE_GRAPH,
      tableOf(tables, REMOTE_GRAPH_CLIENTS, [...rowsOf(tables, REMOTE_GRAPH_CLIENTS).values()]),
    ),
    featuresSection(),
    fieldsSection(),
  ].join("\n");
}

if (import.meta.main) {
  // The clients are loaded for the calls only, not for the page.
  const { callJavaScript } = await import("../compat/agent-server-methods/javascript.ts");
  const { callPython } = await import("../compat/methods/python.ts");
  const project = methodsProject();
  try {
    await regenerate({
      table: "agent_server",
      page: COMPATIBILITY_PAGE,
      text: compatibilityPage,
      config: project.config,
      call: async (url) => ({
        ...(await callJavaScript(url)).results,
        ...(await callPython("agent_server_methods.py", url)).results,
      }),
    });
  } finally {
    project.drop();
  }
}
