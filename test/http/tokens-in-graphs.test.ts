import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newId } from "../../src/platform/lib/ids.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { FlowService, ORIGIN, type User } from "./auth-service/flow-service.ts";
import type { Wire } from "./scenario.ts";

const CONFIG = "test/graphs/tokens/langgraph.json";
const ways = databases.flatMap((database) => [
  { database, inline: false, hosts: "threads" },
  { database, inline: true, hosts: "the serving thread" },
]);

/** A user's thread, and the runs on it. */
class Thread {
  readonly #user: User;
  readonly #userinfo: string;
  readonly id: string;

  private constructor(user: User, userinfo: string, id: string) {
    this.#user = user;
    this.#userinfo = userinfo;
    this.id = id;
  }

  static async of(user: User, flows: FlowService): Promise<Thread> {
    const { body } = await user.send("POST", "/threads", {});
    return new Thread(user, `${flows.server.url}/me`, body.thread_id);
  }

  get path(): string {
    return `/threads/${this.id}`;
  }

  start = (assistant_id: string, wish: object = {}, body: object = {}): Promise<Wire> =>
    this.#wait({ assistant_id, input: { userinfo: this.#userinfo }, config: { configurable: { wish } }, ...body });

  resume = (assistant_id: string, resume: unknown, wish: object = {}): Promise<Wire> =>
    this.#wait({ assistant_id, command: { resume }, config: { configurable: { wish } } });

  get = async (path = ""): Promise<Wire> => (await this.#user.send("GET", `${this.path}${path}`)).body;

  async #wait(body: object): Promise<Wire> {
    const { status, text, body: values } = await this.#user.send("POST", `${this.path}/runs/wait`, body);
    if (status !== 200) throw new Error(`The run was answered ${status}: ${text}`);
    return values;
  }
}

const questionsIn = (values: Wire): Wire[] => (values.__interrupt__ ?? []).map(({ value }: Wire) => value);

describe.each(ways)("tokens in graphs on $database, hosts in $hosts", ({ database, inline }) => {
  let flows: FlowService;
  beforeAll(async () => {
    flows = await FlowService.start(database, { config: CONFIG, inline, env: { THREADMILL_PUBLIC_URL: ORIGIN } });
  });
  afterAll(() => flows.stop());

  let users = 0;
  const newUser = async (name = `user ${++users}`): Promise<User & { name: string }> => {
    const user = await flows.user(name, ["agents", "tokens"]);
    return { name, ...user };
  };
  const grant = async (question: Wire, account: string) => {
    const { status } = await flows.browse(await flows.goAndReturn(question.auth_url, { account }));
    expect(status).toBe(302);
  };
  const assistant = async (user: User): Promise<string> =>
    (await user.send("POST", "/assistants", { graph_id: "profile" })).body.assistant_id;

  it("a run without a token is interrupted, and has it once its user was at the provider", async () => {
    const user = await newUser();
    const thread = await Thread.of(user, flows);
    const asked = await thread.start("profile");
    expect(questionsIn(asked)).toEqual([
      {
        message: "OAuth authentication required for provider 'acme'.",
        auth_url: expect.stringContaining(`${flows.server.url}/auth?`),
        provider: "acme",
        scopes: ["openid"],
      },
    ]);
    const { status, interrupts } = await thread.get();
    expect(status).toBe("interrupted");
    expect(Object.values(interrupts).flat()).toEqual(asked.__interrupt__);
    expect((await thread.get("/runs"))[0].status).toBe("interrupted");
    await grant(questionsIn(asked)[0], user.name);
    expect(await thread.resume("profile", true)).toMatchObject({ account: user.name });
    expect(await thread.get()).toMatchObject({ status: "idle", interrupts: {} });
    expect(await (await Thread.of(user, flows)).start("profile")).toMatchObject({ account: user.name });
  });

  it.each(["done", { done: true }, null, 0, ""])(
    "the answer %j to the interrupt has no effect: without a token it asks again, with one it continues",
    async (answer) => {
      const user = await newUser();
      const thread = await Thread.of(user, flows);
      const [first] = questionsIn(await thread.start("profile"));
      const [second] = questionsIn(await thread.resume("profile", answer));
      expect(second.auth_url).not.toBe(first.auth_url);
      // The first link is as good as the second.
      await grant(first, user.name);
      expect(await thread.resume("profile", answer)).toMatchObject({ account: user.name });
    },
  );

  it("an answer to the question for a token is given to no other question of the node", async () => {
    const user = await newUser();
    const thread = await Thread.of(user, flows);
    expect(questionsIn(await thread.start("questions"))).toEqual(["before?"]);
    const [question] = questionsIn(await thread.resume("questions", "one"));
    expect(question).toMatchObject({ provider: "acme" });
    await grant(question, user.name);
    expect(questionsIn(await thread.resume("questions", "granted"))).toEqual(["after?"]);
    expect(questionsIn(await thread.resume("questions", "two"))).toEqual(["last?"]);
    await user.send("DELETE", "/v2/auth/tokens?provider_id=acme");
    const [again] = questionsIn(await thread.resume("questions", "three"));
    await grant(again, user.name);
    // LangGraph forgets what was answered behind a question that is asked anew.
    expect(questionsIn(await thread.resume("questions", "granted again"))).toEqual(["after?"]);
    await thread.resume("questions", "four");
    const answers = ["one", "four", "five"];
    expect(await thread.resume("questions", "five")).toMatchObject({ answers, account: user.name });
  });

  it("together with another question each is answered by its id, or the other by the plain answer", async () => {
    const user = await newUser();
    const thread = await Thread.of(user, flows);
    const asked: Wire[] = (await thread.start("parallel")).__interrupt__;
    const word = asked.find(({ value }) => value === "word?");
    const token = asked.find(({ value }) => value !== "word?");
    const left = await thread.resume("parallel", { [word.id]: "yes", [token.id]: "not yet" });
    expect(left.answers).toEqual(["yes"]);
    expect(questionsIn(left)).toMatchObject([{ provider: "acme" }]);
    await grant(token.value, user.name);
    expect(await thread.resume("parallel", "now")).toMatchObject({ answers: ["yes"], account: user.name });

    const other = await Thread.of(user, flows);
    await user.send("DELETE", "/v2/auth/tokens?provider_id=acme");
    expect((await other.start("parallel")).__interrupt__).toHaveLength(2);
    expect(await other.resume("parallel", "plain")).toMatchObject({ answers: ["plain"] });
  });

  it("a tool in a subgraph may request it, too", async () => {
    const user = await newUser();
    const thread = await Thread.of(user, flows);
    const [question] = questionsIn(await thread.start("nested"));
    await grant(question, user.name);
    expect(await thread.resume("nested", "granted")).toMatchObject({ account: user.name });
  });

  it("every user gets their own, whatever user the graph names", async () => {
    const [ada, eve] = [await newUser("ada"), await newUser("eve")];
    const hers = await Thread.of(ada, flows);
    await grant(questionsIn(await hers.start("profile"))[0], "ada");
    expect(await hers.resume("profile", true)).toMatchObject({ account: "ada" });
    const his = await Thread.of(eve, flows);
    expect(questionsIn(await his.start("profile"))).toHaveLength(1);
    const liar = await Thread.of(eve, flows);
    const [question] = questionsIn(await liar.start("inspect", {}, { context: { user_id: "ada" } }));
    await grant(question, "eve");
    expect(await liar.resume("inspect", true)).toMatchObject({ account: "eve" });
    const [token] = (await ada.send("GET", "/v2/auth/tokens")).body;
    const thief = await Thread.of(eve, flows);
    const { __error__ } = await thief.start("profile", { token_id: token.id });
    expect(__error__.message).toBe("OAuth token not found");
  });

  it("another workspace of the same user has its own providers and tokens", async () => {
    const tenant_id = await flows.workspace(`workspace ${newId()}`);
    const user = await flows.user("ada", ["agents", "tokens"], tenant_id);
    const { __error__ } = await (await Thread.of(user, flows)).start("profile");
    expect(__error__).toEqual({ error: "Error", message: "OAuth provider 'acme' not found" });
  });

  it("an assistant uses what it is connected to, then the user's default, and asks when there is neither", async () => {
    const user = await newUser();
    const [one, other] = [await assistant(user), await assistant(user)];
    const thread = await Thread.of(user, flows);
    await grant(questionsIn(await thread.start(one))[0], user.name);
    expect(await thread.resume(one, true)).toMatchObject({ account: user.name });
    const connections = async (agent: string) => (await user.send("GET", `/v2/auth/agents/${agent}/connections`)).body;
    expect((await connections(one)).data).toHaveLength(1);
    // The first token of a user is their default, which all of their agents get.
    expect(await (await Thread.of(user, flows)).start(other)).toMatchObject({ account: user.name });
    const [{ id }] = (await user.send("GET", "/v2/auth/tokens")).body;
    await user.send("PATCH", `/v2/auth/tokens/${id}/metadata`, { is_default: false });
    expect(await (await Thread.of(user, flows)).start(one)).toMatchObject({ account: user.name });
    const unconnected = await Thread.of(user, flows);
    const [question] = questionsIn(await unconnected.start(other));
    expect(questionsIn(await (await Thread.of(user, flows)).start(one, { agent_scoped: false }))).toHaveLength(1);
    expect(await (await Thread.of(user, flows)).start(other, { token_id: id })).toMatchObject({ account: user.name });
    await grant(question, user.name);
    expect(await unconnected.resume(other, true)).toMatchObject({ account: user.name });
    expect((await connections(other)).data).toHaveLength(1);
  });

  it("an error of the service is an error of the run, with its message", async () => {
    const thread = await Thread.of(await newUser(), flows);
    const errorOf = async (wish: object) => (await thread.start("profile", wish)).__error__.message;
    expect(await errorOf({ provider: "nowhere" })).toBe("OAuth provider 'nowhere' not found");
    expect(await errorOf({ provider: 7 })).toContain("`provider` to be a string");
    expect(await errorOf({ scopes: "openid" })).toContain("`scopes` to be a list of strings");
  });

  it("a provider that cannot renew a token now is an error, and one that does not respond delays no cancelled run", async () => {
    const user = await newUser();
    const thread = await Thread.of(user, flows);
    flows.server.access_ttl_s = 1;
    await grant(questionsIn(await thread.start("profile"))[0], user.name);
    flows.server.access_ttl_s = 3600;
    const [{ expires_at }] = (await user.send("GET", "/v2/auth/tokens")).body;
    await until("the token's time is over", async () => Date.now() > Date.parse(expires_at));
    flows.server.behavior = "error";
    const { __error__ } = await thread.resume("profile", true);
    expect(__error__.message).toBe(
      'The token for "acme" has expired and could not be refreshed: status 500. Try again.',
    );
    flows.server.behavior = "silent";
    const before = flows.server.requests.length;
    const run = (await user.send("POST", `${thread.path}/runs`, { assistant_id: "profile", input: {} })).body;
    await until("the provider is asked", async () => flows.server.requests.slice(before).includes("/token"));
    const started = performance.now();
    await user.send("POST", `${thread.path}/runs/${run.run_id}/cancel?wait=1`);
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(await thread.get(`/runs/${run.run_id}`)).toMatchObject({ status: "interrupted" });
    flows.server.behavior = "normal";
  });

  it("is requested by the process that executes the run, whichever that is", async (test) => {
    if (database !== "postgres" || inline) return test.skip();
    const env = { THREADMILL_PUBLIC_URL: ORIGIN, N_JOBS_PER_WORKER: "1", THREADMILL_HOSTS: "1" };
    const crowded = await FlowService.start(database, { config: CONFIG, env });
    const user = await crowded.user("far", ["agents", "tokens"]);
    const busy = await Thread.of(user, crowded);
    const waiting = (await user.send("POST", `${busy.path}/runs`, { assistant_id: "waits", input: {} })).body;
    await until("it runs", async () => (await busy.get(`/runs/${waiting.run_id}`)).status === "running");
    const { threadmill } = await crowded.startAnother();
    const thread = await Thread.of(user, crowded);
    const [question] = questionsIn(await thread.start("profile"));
    await crowded.browse(await crowded.goAndReturn(question.auth_url, { account: "far" }));
    expect(await thread.resume("profile", true)).toMatchObject({ account: "far" });
    expect(await busy.get(`/runs/${waiting.run_id}`)).toMatchObject({ status: "running" });
    await threadmill.stop();
    await crowded.stop();
  });
});
