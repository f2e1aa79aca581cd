import type { Mutant } from "./mutants.ts";

const GRAPHS = "test/http/tokens-in-graphs.test.ts";
const REQUESTS = "test/engine/token-requests.test.ts";

/** Guards of tokens in graphs. */
export const GRAPH_TOKEN_MUTANTS: readonly Mutant[] = [
  {
    name: "graphs: a run that is being cancelled requests a token",
    file: "src/agent-server/engine/execution/host-requests.ts",
    replace: ["  await refuseUnlessHeld(options.database, run);\n  const timeout", "  const timeout"],
    suites: [REQUESTS],
  },
  {
    name: "graphs: a stopped run receives its token",
    file: "src/agent-server/engine/execution/host-requests.ts",
    replace: ["    await refuseUnlessHeld(options.database, run);\n    return answer;", "    return answer;"],
    suites: [REQUESTS],
  },
  {
    name: "graphs: a graph receives internal errors of the service",
    file: "src/agent-server/engine/execution/host-requests.ts",
    replace: ["if (error instanceof ApiError) throw error;", "throw error;"],
    suites: [REQUESTS],
  },
  {
    name: "graphs: the answer to a token interrupt goes to the next interrupt of the node",
    file: "src/agent-server/graph-hosts/inside/execute.ts",
    replace: ["command.resume && !mayNeedToken(execution)", "command.resume"],
    suites: [GRAPHS],
  },
  {
    name: "graphs: the answer of an earlier run goes to the next interrupt of the node",
    file: "src/agent-server/graph-hosts/inside/execute.ts",
    replace: ["  scope.isResumeConsumed = true;\n", ""],
    suites: [GRAPHS],
  },
  {
    name: "graphs: the second interrupt of a node is not in the state",
    file: "src/agent-server/graph-hosts/inside/checkpointer.ts",
    replace: [" && !(hideResumes && isResume(write))", ""],
    suites: ["test/http/interrupts.test.ts"],
  },
  {
    name: "graphs: a user token is requested as a token of the assistant",
    file: "src/access/oauth/flows.ts",
    replace: ["agent_scoped ? assistant_id : undefined", "assistant_id"],
    suites: [GRAPHS],
  },
  {
    name: "graphs: threadmill/graph is resolved from the project's packages",
    file: "src/agent-server/graph-hosts/inside/loading/packages.ts",
    replace: ['specifier === "threadmill/graph"', 'specifier === ""'],
    suites: ["test/engine/author-imports.test.ts"],
  },
];
