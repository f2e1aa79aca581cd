import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { getToken } from "threadmill/graph";

const State = Annotation.Root({ profile: Annotation<unknown>() });

/** Whom to ask, as the operator has set it: a caller must not say where a user's token is sent to. */
const settings = () => ({
  provider: process.env.OAUTH_PROVIDER ?? "acme",
  scopes: (process.env.OAUTH_SCOPES ?? "openid").split(" "),
  userinfo: process.env.OAUTH_USERINFO_URL ?? "https://acme.example.com/userinfo",
});

/** Asks a provider who the run's user is there. */
async function lookUp(_: typeof State.State, config: LangGraphRunnableConfig): Promise<typeof State.Update> {
  const { provider, scopes, userinfo } = settings();
  // Without a token the run stops here, and this node runs again when it is resumed.
  const token = await getToken(config, { provider, scopes, message: `Please let me see who you are at ${provider}.` });
  const response = await fetch(userinfo, { headers: { authorization: `Bearer ${token}` }, signal: config.signal });
  if (!response.ok) throw new Error(`${userinfo} answered ${response.status}.`);
  // What the provider says, and never the token: everybody who may read the thread reads its state.
  return { profile: await response.json() };
}

export const graph = new StateGraph(State)
  .addNode("look_up", lookUp)
  .addEdge(START, "look_up")
  .addEdge("look_up", END)
  .compile();
