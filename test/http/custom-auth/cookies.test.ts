import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createProject, oneNodeGraph, type TestProject } from "../../support/project.ts";
import { Scenario } from "../scenario.ts";

/** Users have a session cookie, or send their name as a token. */
const AUTH = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
export const auth = new Auth()
  .authenticate((request) => {
    const [, session] = /session=(\\w+)/.exec(request.headers.get("cookie") ?? "") ?? [];
    const name = session ?? request.headers.get("authorization")?.slice("Bearer ".length);
    if (!name) throw new HTTPException(401, { message: "no session" });
    return name;
  });
`;

const COOKIE = { cookie: "theme=dark; session=ada" };

type Headers = Record<string, string>;

const OTHERS: [string, Headers][] = [
  ["of another site", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
  ["of the same site, but another origin", { origin: "http://other.localhost", "sec-fetch-site": "same-site" }],
  ["of another site, in a browser that sends only Origin", { origin: "https://evil.example" }],
  ["without an origin, such as a sandboxed frame", { origin: "null" }],
  ["of another site, without Origin", { "sec-fetch-site": "cross-site" }],
];

const OWN: [string, Headers][] = [
  ["a program", {}],
  ["a page of the service", { origin: "http://localhost", "sec-fetch-site": "same-origin" }],
  ["a page behind a proxy", { origin: "https://agents.example", "sec-fetch-site": "same-origin" }],
  ["a page of the service, without Sec-Fetch-Site", { origin: "http://localhost", host: "localhost" }],
  ["a page of THREADMILL_PUBLIC_URL, without Sec-Fetch-Site", { origin: "https://public.example" }],
  ["the user, by the address bar", { "sec-fetch-site": "none" }],
];

describe.each([
  ["without a cache", undefined],
  ["with a cache", { cache_keys: ["cookie", "authorization"], ttl_seconds: 60 }],
])("cookies for an authentication module %s", (_, cache) => {
  let api: Scenario;
  let project: TestProject;
  let url: string;
  beforeAll(async () => {
    const langgraph = { graphs: { agent: "./agent.mjs:graph" }, auth: { path: "./auth.mjs:auth", cache } };
    project = createProject({
      "langgraph.json": JSON.stringify(langgraph),
      "agent.mjs": oneNodeGraph("one"),
      "auth.mjs": AUTH,
    });
    const env = { THREADMILL_PUBLIC_URL: "https://public.example" };
    api = await Scenario.start("sqlite", env, { config: project.config });
    url = await api.service.listen();
  });
  afterAll(async () => {
    await api.stop();
    project.drop();
  });

  const newThread = async (): Promise<string> => (await api.call("POST", "/threads", {}, COOKIE)).thread_id;
  const copy = async (headers: Headers): Promise<number> =>
    (await api.send("POST", `/threads/${await newThread()}/copy`, undefined, headers)).status;
  const openSocket = async (headers: Headers): Promise<string> => {
    const address = `${url.replace("http", "ws")}/threads/${await newThread()}/stream/events`;
    const socket = new WebSocket(address, { headers });
    const outcome = await once(socket, "open").then(
      () => "open",
      (error: Error) => error.message,
    );
    socket.terminate();
    return outcome;
  };

  it.each(OTHERS)("are removed from requests of pages %s", async (_, headers) => {
    expect(await copy({ ...COOKIE, ...headers })).toBe(401);
    expect(await openSocket({ ...COOKIE, ...headers })).toMatch("401");
    // Pages of other origins can still use a token, which the browser does not add by itself.
    expect(await copy({ ...COOKIE, ...headers, authorization: "Bearer ada" })).toBe(200);
    expect(await openSocket({ ...headers, authorization: "Bearer ada" })).toBe("open");
  });

  it.each(OWN)("of %s are kept", async (_, headers) => {
    expect(await copy({ ...COOKIE, ...headers })).toBe(200);
    const { host: __, origin = "", ...others } = headers;
    const own = origin === "http://localhost" ? { ...others, origin: url } : headers;
    expect(await openSocket({ ...COOKIE, ...own })).toBe("open");
  });
});
