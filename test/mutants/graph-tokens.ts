import type { Mutant } from "./mutants.ts";

const GRAPHS = "test/http/tokens-in-graphs.test.ts";
const REQUESTS = "test/engine/token-requests.test.ts";

/** Guards of tokens in graphs. */
export const GRAPH_TOKEN_MUTANTS: readonly Mutant[] = [
  {
    name: "graphs: a run that is to stop begins with a token all the same",
    file: "src/agent-server/engine/token-requests.ts",
    replace: ["  await refuseUnlessHeld(options.database, run);\n  const late", "  const late"],
    suites: [REQUESTS],
  },
  {
    name: "graphs: a run that was stopped gets its token",
    file: "src/agent-server/engine/token-requests.ts",
    replace: ["    await refuseUnlessHeld(options.database, run);\n    return answer;", "    return answer;"],
    suites: [REQUESTS],
  },
  {
    name: "graphs: a graph reads what went wrong within the service",
    file: "src/agent-server/engine/token-requests.ts",
    replace: ["if (error instanceof ApiError) throw error;", "throw error;"],
    suites: [REQUESTS],
  },
  {
    name: "graphs: the answer to a question for a token goes to the next question of the node",
    file: "src/agent-server/graph-hosts/inside/execute.ts",
    replace: ["command.resume && !mayAskForToken(execution)", "command.resume"],
    suites: [GRAPHS],
  },
  {
    name: "graphs: the answer of an earlier run goes to the next question of the node",
    file: "src/agent-server/graph-hosts/inside/execute.ts",
    replace: ["  scope.answered = true;\n", ""],
    suites: [GRAPHS],
  },
  {
    name: "graphs: the second question of a node is not in the state",
    file: "src/agent-server/graph-hosts/inside/checkpointer.ts",
    replace: [" && !(withoutAnswers && isAnyAnswer(write))", ""],
    suites: ["test/http/interrupts.test.ts"],
  },
  {
    name: "graphs: a token that is the user's alone is asked for as the assistant's",
    file: "src/access/tokens/run-token.ts",
    replace: ["agent_scoped ? assistant_id : undefined", "assistant_id"],
    suites: [GRAPHS],
  },
  {
    name: "graphs: threadmill/graph is looked for among the project's packages",
    file: "src/agent-server/graph-hosts/inside/loading/packages.ts",
    replace: ['specifier === "threadmill/graph"', 'specifier === ""'],
    suites: ["test/engine/author-imports.test.ts"],
  },
];
