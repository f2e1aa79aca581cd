import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { getToken } from "threadmill/graph";

const State = Annotation.Root({ profile: Annotation<unknown>() });

/** Set by the operator: a caller must not control where the token of a user is sent. */
const settings = () => ({
  provider: process.env.OAUTH_PROVIDER ?? "acme",
  scopes: (process.env.OAUTH_SCOPES ?? "openid").split(" "),
  userinfo: process.env.OAUTH_USERINFO_URL ?? "https://acme.example.com/userinfo",
});

/** Reads the profile of the run's user from a provider. */
async function lookUp(_: typeof State.State, config: LangGraphRunnableConfig): Promise<typeof State.Update> {
  const { provider, scopes, userinfo } = settings();
  // Without a token the run is interrupted here, and the node runs again when it is resumed.
  const token = await getToken(config, {
    provider,
    scopes,
    message: `Authorize access to your profile at ${provider}.`,
  });
  const response = await fetch(userinfo, { headers: { authorization: `Bearer ${token}` }, signal: config.signal });
  if (!response.ok) throw new Error(`The request to ${userinfo} failed with status ${response.status}.`);
  // Never store the token: the state is visible to all users who may read the thread.
  return { profile: await response.json() };
}

export const graph = new StateGraph(State)
  .addNode("look_up", lookUp)
  .addEdge(START, "look_up")
  .addEdge("look_up", END)
  .compile();
