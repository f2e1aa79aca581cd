import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AUDIENCE, Issuer } from "../../support/issuer.ts";
import { createProject, oneNodeGraph, type TestProject } from "../../support/project.ts";
import { ADMIN, closedService, newWorkspace } from "../callers.ts";
import type { Scenario } from "../scenario.ts";

/** Trusts the tokens of the service's own identity provider, and refuses the user mallory. */
const AUTH = `
import { Auth, HTTPException } from "@langchain/langgraph-sdk/auth";
export const auth = new Auth()
  .authenticate((request) => {
    const token = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    const { sub } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString() || "{}");
    if (!sub || sub === "mallory") throw new HTTPException(401, { message: "Not a user of the project." });
    return sub;
  })
  .on("threads", ({ value, user }) => {
    value.metadata = { ...value.metadata, owner: user.identity };
    return { owner: user.identity };
  });
`;

describe("a JWT of the service's identity provider, with an authentication module", () => {
  let api: Scenario;
  let project: TestProject;
  let issuer: Issuer;
  const workspaces: string[] = [];
  beforeAll(async () => {
    issuer = await Issuer.start();
    const langgraph = { graphs: { agent: "./agent.mjs:graph" }, auth: { path: "./auth.mjs:auth" } };
    project = createProject({
      "langgraph.json": JSON.stringify(langgraph),
      "agent.mjs": oneNodeGraph("one"),
      "auth.mjs": AUTH,
    });
    const env = {
      THREADMILL_OIDC_ISSUER: issuer.url,
      THREADMILL_OIDC_AUDIENCE: AUDIENCE,
      THREADMILL_ALLOW_LOOPBACK_OAUTH: "1",
    };
    api = await closedService("sqlite", env, { config: project.config });
    workspaces.push(await newWorkspace(api), await newWorkspace(api));
  });
  afterAll(async () => {
    await api.stop();
    await issuer.stop();
    project.drop();
  });

  const bearer = async (sub: string) => ({ authorization: `Bearer ${await issuer.token({ sub })}` });
  const join = (user_id: string, tenant_id = workspaces[0], role = "member") =>
    api.call("PUT", `/admin/workspaces/${tenant_id}/members/${user_id}`, { role }, ADMIN);

  it("is authenticated by the module if its user is a member of no workspace", async () => {
    const headers = await bearer("visitor");
    const { metadata } = await api.call("POST", "/threads", {}, headers);
    expect(metadata).toEqual({ owner: "visitor" });
    expect((await api.send("GET", "/openapi.json", undefined, headers)).status).toBe(200);
    expect((await api.send("POST", "/runs", { assistant_id: "agent", input: {} }, headers)).status).toBe(200);
  });

  it("is authenticated by the module if its user is a member of several workspaces", async () => {
    for (const tenant_id of workspaces) await join("commuter", tenant_id);
    const headers = await bearer("commuter");
    expect((await api.call("POST", "/threads", {}, headers)).metadata).toEqual({ owner: "commuter" });
    // The other products do not know the users of the module.
    expect((await api.send("GET", "/sessions", undefined, headers)).status).toBe(403);
  });

  it("is refused by the module", async () => {
    const { status, body } = await api.send("POST", "/threads", {}, await bearer("mallory"));
    expect([status, body]).toEqual([401, { detail: "Not a user of the project." }]);
  });

  it("is not passed to the module if its user is an administrator", async () => {
    await join("boss", workspaces[0], "admin");
    expect((await api.call("POST", "/threads", {}, await bearer("boss"))).metadata).toEqual({});
  });
});
