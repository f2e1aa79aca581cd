import { tool } from "@langchain/core/tools";
import { Annotation, END, interrupt, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { type GetTokenOptions, getToken } from "threadmill/graph";
import { z } from "zod";

const State = Annotation.Root({
  /** Where the token is good for something. */
  userinfo: Annotation<string>(),
  /** Whose token it was, as the provider says. */
  account: Annotation<string>(),
  answers: Annotation<unknown[]>({ reducer: (before, added) => before.concat(added), default: () => [] }),
});
type Config = LangGraphRunnableConfig;
type Node = (state: typeof State.State, config: Config) => Promise<typeof State.Update>;

const wishOf = (config: Config): GetTokenOptions => ({
  provider: "acme",
  scopes: ["openid"],
  ...(config.configurable?.wish as object),
});

async function accountOf(token: string, userinfo: string): Promise<string> {
  const response = await fetch(userinfo, { headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error(`The provider answered ${response.status}.`);
  return ((await response.json()) as { sub: string }).sub;
}

const lookUp: Node = async ({ userinfo }, config) => ({
  account: await accountOf(await getToken(config, wishOf(config)), userinfo),
});

const ofOneNode = (node: Node) =>
  new StateGraph(State).addNode("node", node).addEdge(START, "node").addEdge("node", END).compile();

/** Asks for a token and uses it. */
export const profile = ofOneNode(lookUp);

/** A node with a question before the token, one after it, and another token. */
export const questions = ofOneNode(async ({ userinfo }, config) => {
  const before = interrupt("before?");
  const token = await getToken(config, wishOf(config));
  const after = interrupt("after?");
  await getToken(config, { ...wishOf(config), agent_scoped: false });
  const last = interrupt("last?");
  return { answers: [before, after, last], account: await accountOf(token, userinfo) };
});

/** Two nodes at a time: one wants a token, the other a word. */
export const parallel = new StateGraph(State)
  .addNode("token", lookUp)
  .addNode("word", async () => ({ answers: [interrupt("word?")] }))
  .addEdge(START, "token")
  .addEdge(START, "word")
  .addEdge("token", END)
  .addEdge("word", END)
  .compile();

const myAccount = tool(
  async ({ userinfo }, config: Config) => accountOf(await getToken(config, wishOf(config)), userinfo),
  { name: "my_account", description: "Who am I?", schema: z.object({ userinfo: z.string() }) },
);

/** The token is asked for in a tool that a node of a subgraph calls. */
export const nested = new StateGraph(State)
  .addNode(
    "inner",
    ofOneNode(async ({ userinfo }, config) => ({ account: String(await myAccount.invoke({ userinfo }, config)) })),
  )
  .addEdge(START, "inner")
  .addEdge("inner", END)
  .compile();

/** Keeps its place until it is cancelled. */
export const waits = ofOneNode(async (_, { signal, writer }) => {
  writer?.("waiting");
  await new Promise((resolve) => signal?.addEventListener("abort", resolve, { once: true }));
  return {};
});

/** Tries what no graph should get: somebody else's token, by saying that it runs for somebody else. */
export const inspect = ofOneNode(async ({ userinfo }, config) => {
  const lies = { user_id: "ada", langgraph_auth_user_id: "ada", assistant_id: "another", tenant_id: "another" };
  const token = await getToken({ configurable: { ...config.configurable, ...lies } }, wishOf(config));
  return { account: await accountOf(token, userinfo) };
});
