import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADMIN, closedService, newKey, newWorkspace } from "../http/callers.ts";
import type { Scenario, Wire } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { AUDIENCE, Issuer } from "../support/issuer.ts";
import { runCli } from "../support/process.ts";
import { parseSse } from "../support/sse.ts";
import { until } from "../support/until.ts";

/** What was opened with a key or a JWT ends with it. A finding of the security review: it went on to its own end. */

/** An answer that is open ends within this time after the access of its caller. */
const MAX_END_MS = 1_900;
/** A client that is gone has so long to come back, in these services. */
const GRACE_MS = 150;

const SLOW = { assistant_id: "slow", input: { steps: ["in"], door: null } };
const UNAUTHORIZED = (message: string) => ({ error: "Unauthorized", message: expect.stringContaining(message) });
const REVOKED = UNAUTHORIZED("API key was revoked");

type Headers = Record<string, string>;

describe.each(databases)("open streams on %s", (database) => {
  let issuer: Issuer;
  let api: Scenario;
  let url: string;
  let tenant: string;
  beforeAll(async () => {
    issuer = await Issuer.start();
    api = await closedService(database, {
      THREADMILL_OIDC_ISSUER: issuer.url,
      THREADMILL_OIDC_AUDIENCE: AUDIENCE,
      THREADMILL_ALLOW_LOOPBACK_OAUTH: "1",
      THREADMILL_DISCONNECT_GRACE: `${GRACE_MS}ms`,
    });
    url = await api.service.listen();
    tenant = await newWorkspace(api);
  });
  afterAll(async () => {
    await api.stop();
    await issuer.stop();
  });

  const keyed = async (user_id = "alice") => {
    const { id, key } = await newKey(api, { tenant_id: tenant, user_id });
    return { id: id as string, headers: { "X-Api-Key": key as string } };
  };
  const member = (user: string, role: "member" | "admin" = "member") =>
    api.call("PUT", `/admin/workspaces/${tenant}/members/${user}`, { role }, ADMIN);
  const withToken = async (claims: object) => ({ Authorization: `Bearer ${await issuer.token({ ...claims })}` });
  const revoke = (id: string) => api.call("DELETE", `/admin/keys/${id}`, undefined, ADMIN);

  /** A request over a socket, whose answer has begun. */
  async function open(method: string, path: string, headers: Headers, body?: object) {
    const response = await fetch(`${url}${path}`, {
      method,
      body: body && JSON.stringify(body),
      headers: { "content-type": "application/json", ...headers },
    });
    return { status: response.status, text: response.text() };
  }
  type Open = Awaited<ReturnType<typeof open>>;

  const newThread = async (headers: Headers) => (await api.call("POST", "/threads", {}, headers)).thread_id as string;
  const runsOf = (thread_id: string, headers: Headers): Promise<Wire[]> =>
    api.call("GET", `/threads/${thread_id}/runs`, undefined, headers);
  /** A run that has begun and does not end by itself. */
  const begun = (thread_id: string, headers: Headers): Promise<Wire> =>
    until("the run waits in its node", async () => {
      const { next } = await api.call("GET", `/threads/${thread_id}/state`, undefined, headers);
      return next?.includes("wait") ? (await runsOf(thread_id, headers))[0] : undefined;
    });
  const runningSlow = async (headers: Headers, body: object = {}): Promise<Wire> => {
    const thread_id = await newThread(headers);
    await api.call("POST", `/threads/${thread_id}/runs`, { ...SLOW, ...body }, headers);
    return begun(thread_id, headers);
  };

  /** Every kind of answer that stays open while a run does, each with what it has at its end. */
  async function openAll(headers: Headers, run: Wire): Promise<Record<string, Open>> {
    const [thread, stateless] = [`/threads/${run.thread_id}`, await newThread(headers)];
    const path = `${thread}/runs/${run.run_id}`;
    const all = {
      "a run's stream": open("GET", `${path}/stream`, headers),
      "a thread's stream": open("GET", `${thread}/stream`, headers),
      "the stream of a new run": open("POST", `/threads/${stateless}/runs/stream`, headers, SLOW),
      "the stream of a new stateless run": open("POST", "/runs/stream", headers, SLOW),
      "a wait": open("GET", `${path}/join`, headers),
      "a wait for a new run": open("POST", "/runs/wait", headers, SLOW),
    };
    const entries = Object.entries(all).map(async ([name, one]) => [name, await one] as const);
    return Object.fromEntries(await Promise.all(entries));
  }

  /** What each says in the end, once all have ended. */
  async function endsOf(all: Record<string, Open>): Promise<Record<string, unknown>> {
    const entries = Object.entries(all).map(async ([name, { text }]) => {
      const whole = await text;
      return [name, name.includes("wait") ? JSON.parse(whole) : parseSse(whole).at(-1)] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }
  const refused = (reason: object) => ({
    "a run's stream": { event: "error", data: reason, id: undefined },
    "a thread's stream": { event: "error", data: reason, id: undefined },
    "the stream of a new run": { event: "error", data: reason, id: undefined },
    "the stream of a new stateless run": { event: "error", data: reason, id: undefined },
    "a wait": { __error__: reason },
    "a wait for a new run": { __error__: reason },
  });

  it("ends with an error when its key is revoked; streams of others stay open", async () => {
    const [mine, others] = [await keyed(), await keyed()];
    const run = await runningSlow(mine.headers);
    const open_with_mine = await openAll(mine.headers, run);
    const elsewhere = await open("GET", `/threads/${run.thread_id}/runs/${run.run_id}/stream`, others.headers);
    await revoke(mine.id);
    const revoked_at = performance.now();
    expect(await endsOf(open_with_mine)).toEqual(refused(REVOKED));
    expect(performance.now() - revoked_at).toBeLessThan(MAX_END_MS);
    await api.call("POST", `/threads/${run.thread_id}/runs/${run.run_id}/cancel?wait=1`, undefined, others.headers);
    // It came to the end of the run, which nobody had cancelled.
    expect(await elsewhere.text).not.toContain("Unauthorized");
  });

  it("ends when another process revokes its key", async () => {
    const { id, headers } = await keyed();
    const all = await openAll(headers, await runningSlow(headers));
    const { data_dir, url: database_url } = api.service.database;
    const at = database_url ? ["--database-url", database_url] : ["--data", data_dir];
    expect(await runCli(["keys", "revoke", id, ...at])).toMatchObject({ status: 0 });
    const revoked_at = performance.now();
    expect(await endsOf(all)).toEqual(refused(REVOKED));
    expect(performance.now() - revoked_at).toBeLessThan(MAX_END_MS);
  });

  it("is answered 401 when it had not been answered yet", async () => {
    const { id, headers } = await keyed();
    const { thread_id, run_id } = await runningSlow(headers);
    const readers = async () =>
      Number(/^threadmill_run_readers (\d+)$/m.exec((await api.send("GET", "/metrics", undefined, ADMIN)).text)?.[1]);
    const before = await readers();
    const waiting = api.send("GET", `/threads/${thread_id}/runs/${run_id}/join`, undefined, headers);
    await until("the request waits for the run", async () => (await readers()) > before);
    await revoke(id);
    expect(await waiting).toMatchObject({ status: 401, body: { detail: "The API key was revoked." } });
  });

  it("counts as a disconnect of the client for the run when the key is revoked", async () => {
    const [mine, others] = [await keyed(), await keyed()];
    const watched = await runningSlow(others.headers);
    const join = (run: Wire, cancel: boolean) =>
      open("GET", `/threads/${run.thread_id}/runs/${run.run_id}/stream?cancel_on_disconnect=${cancel}`, mine.headers);
    const unwatched = await runningSlow(others.headers);
    const streams = await Promise.all([join(watched, true), join(unwatched, false)]);
    await revoke(mine.id);
    await Promise.all(streams.map(({ text }) => text));
    const statusOf = async ({ thread_id }: Wire) => (await runsOf(thread_id, others.headers))[0].status;
    await until("the run is cancelled", async () => (await statusOf(watched)) === "interrupted");
    expect(await statusOf(unwatched)).toBe("running");
  });

  it("ends when its JWT expires", async () => {
    await member("brief");
    const lasting = await withToken({ sub: "brief" });
    const run = await runningSlow(lasting);
    const [elsewhere, exp] = [
      await open("GET", `/threads/${run.thread_id}/stream`, lasting),
      Math.ceil(Date.now() / 1000) + 3,
    ];
    const all = await openAll(await withToken({ sub: "brief", exp }), run);
    expect(await endsOf(all)).toEqual(refused(UNAUTHORIZED("token has expired")));
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000);
    expect(Date.now()).toBeLessThan(exp * 1000 + MAX_END_MS);
    // The same user's other token is still good: its stream ends with the thread.
    await api.call("POST", `/threads/${run.thread_id}/runs/${run.run_id}/cancel?wait=1`, undefined, lasting);
    await api.call("DELETE", `/threads/${run.thread_id}`, undefined, lasting);
    expect(await elsewhere.text).not.toContain("Unauthorized");
  });

  it("ends when its user is removed from the workspace, or is no longer an admin there", async () => {
    await member("carol");
    await member("dave", "admin");
    const [carol, dave] = [await withToken({ sub: "carol" }), await withToken({ sub: "dave" })];
    const run = await runningSlow(carol);
    const [all_of_carol, all_of_dave] = [await openAll(carol, run), await openAll(dave, run)];
    await api.call("DELETE", `/admin/workspaces/${tenant}/members/carol`, undefined, ADMIN);
    await member("dave", "member");
    const changed_at = performance.now();
    expect(await endsOf(all_of_carol)).toEqual(refused(UNAUTHORIZED("no longer a member")));
    expect(await endsOf(all_of_dave)).toEqual(refused(UNAUTHORIZED("no longer an admin")));
    expect(performance.now() - changed_at).toBeLessThan(MAX_END_MS);
  });

  it("continues when its user becomes an admin", async () => {
    await member("erin");
    const erin = await withToken({ sub: "erin" });
    const run = await runningSlow(erin);
    const stream = await open("GET", `/threads/${run.thread_id}/runs/${run.run_id}/stream`, erin);
    await member("erin", "admin");
    // Ended by the same look as this one.
    const { id, headers } = await keyed();
    const other = await open("GET", `/threads/${run.thread_id}/stream`, headers);
    await revoke(id);
    await other.text;
    await api.call("POST", `/threads/${run.thread_id}/runs/${run.run_id}/cancel?wait=1`, undefined, erin);
    expect(await stream.text).not.toContain("Unauthorized");
  });

  it("gives no OAuth token that comes after the key was revoked", async () => {
    const { id, headers } = await keyed("frank");
    const provider = { provider_id: "acme", name: "Acme", client_id: "id", client_secret: "secret" };
    const urls = { auth_url: "https://id.example/auth", token_url: "https://id.example/token" };
    await api.call("POST", "/v2/auth/providers", { ...provider, ...urls }, headers);
    const { auth_id } = await api.call("POST", "/v2/auth/authenticate", { provider: "acme", scopes: [] }, headers);
    const waiting = await open("GET", `/v2/auth/wait/${auth_id}?timeout=60`, headers);
    await revoke(id);
    expect(JSON.parse(await waiting.text)).toEqual({ __error__: REVOKED });
  });
});
