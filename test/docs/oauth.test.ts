import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authorizeInBrowser, OAuthServer, type TestClient } from "../support/oauth-server.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { blocksIn, read } from "./page.ts";

const [, way = ""] = read("docs/oauth.md").split("### Example with GitHub\n");
const part = way.split(/^## /m)[0] as string;
const blocks = (language: string) => blocksIn(part, language);

const CLIENT = {
  client_id: "an-app",
  client_secret: "its-secret",
  token_endpoint_auth_method: "client_secret_post",
} as const satisfies TestClient;

describe("docs/oauth.md", () => {
  let project: TestProject;
  let oauth: OAuthServer;
  let server: ServerProcess;
  beforeAll(async () => {
    project = createProject({});
    const port = await freePort();
    // The callback that the page tells to register; in the graph nobody says how the service is called.
    const [callback = ""] = /http:\/\/localhost:2024\/v2\/auth\/callback\/\w+/.exec(part) ?? [];
    oauth = await OAuthServer.start([CLIENT], [callback.replace("2024", String(port))]);
    const [start = ""] = blocks("sh");
    const env = Object.fromEntries(
      [...here(start).matchAll(/(OAUTH_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    );
    const where = { config: "examples/langgraph.json", data: project.data, port };
    server = await startProcess({ ...where, command: "dev", env: { ...env, THREADMILL_ALLOW_LOOPBACK_OAUTH: "1" } });
  });
  afterAll(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await oauth.stop();
    project.drop();
  });

  /** What the page shows, with the server of the test in GitHub's place. */
  const here = (shown: string) =>
    shown
      .replaceAll("http://localhost:2024", server?.url)
      .replaceAll("https://github.com/login/oauth/authorize", `${oauth.url}/auth`)
      .replaceAll("https://github.com/login/oauth/access_token", `${oauth.url}/token`)
      .replaceAll("https://api.github.com/user", `${oauth.url}/me`)
      .replaceAll("read:user", "openid")
      .replace('"client_id": "..."', `"client_id": "${CLIENT.client_id}"`)
      .replace('"client_secret": "..."', `"client_secret": "${CLIENT.client_secret}"`);
  const shell = async (command: string, env: Record<string, string> = {}) =>
    (await promisify(execFile)("bash", ["-ec", here(command)], { env: { ...process.env, ...env } })).stdout;
  const authorize = async (auth_url: string) => {
    const page = await fetch(await authorizeInBrowser(auth_url, { account: "ada" }));
    expect(await page.text()).toContain("Connected: github");
  };

  it("shows a way to a token in a graph that works, with curl and with the JavaScript client", async () => {
    const [, ask = "", resume = ""] = blocks("sh");
    const printed = await shell(`${ask}\necho; echo "$THREAD"`);
    const [values = "", THREAD = ""] = printed.trim().split("\n").slice(-2);
    const [{ value }] = JSON.parse(values.slice(values.indexOf('{"__interrupt__"'))).__interrupt__;
    const [shown] = blocks("json").map((json) => JSON.parse(json).__interrupt__[0].value);
    expect(Object.keys(value)).toEqual(Object.keys(shown));
    expect(value).toMatchObject({ message: shown.message, provider: shown.provider });
    await authorize(value.auth_url);
    expect(JSON.parse(await shell(resume, { THREAD }))).toEqual({ profile: { sub: "ada" } });

    const [, forget = ""] = /`(curl -X DELETE [^`]+)`/.exec(part) ?? [];
    expect(JSON.parse(await shell(forget))).toMatchObject({ provider_id: "github" });
    const [script = ""] = blocks("js");
    project.write("try.mjs", here(script));
    const child = spawn(process.execPath, [join(project.folder, "try.mjs")]);
    const [question] = await once(child.stdout, "data");
    const [auth_url = ""] = /http\S+(?=, then press Enter)/.exec(String(question)) ?? [];
    await authorize(auth_url);
    child.stdin.write("\n");
    expect(await text(child.stdout)).toBe("{ sub: 'ada' }\n");
  });
});
