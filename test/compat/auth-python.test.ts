import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { OAuthServer } from "../support/oauth-server.ts";
import { startService, type TestService } from "../support/service.ts";
import { pythonEnv, runScenarios, type ScenarioLine } from "./python-env.ts";

/** Where the client may find the API. */
const MOUNTS = ["/", "/api-host"];

/** The scenarios of python/auth_scenarios.py; a test below fails when this list is not complete. */
const SCENARIOS = [
  "providers are created, read, listed, changed and deleted",
  "a user is sent to the provider, is waited for, and has a token from then on",
  "a wait ends with a TimeoutError, and at once for what never was or is somebody else's",
  "a service names the user; from anybody else such names are ignored",
  "an agent gets the user's token, and one that asks for more is sent to the provider",
  "tokens are there until their user revokes them, which may be done twice and touches nobody else's",
  "what is refused is an exception with the status and the reason",
];

const NAMES = MOUNTS.flatMap((mount) => SCENARIOS.map((scenario) => `${mount}: ${scenario}`));

const CLIENT = {
  client_id: "python-client",
  client_secret: "a secret",
  token_endpoint_auth_method: "client_secret_post",
} as const;
const ROOT = "root-0123456789abcdef0123456789abcdef";

const { python } = await pythonEnv();

describe.skipIf(!python).each(databases)("the official Python client of the Auth Service against %s", (database) => {
  let service: TestService;
  let oauth: OAuthServer;
  let lines: ScenarioLine[];
  let complaints: string;
  beforeAll(async () => {
    const env = { API_KEYS: ROOT, THREADMILL_ALLOW_LOOPBACK_OAUTH: "1" };
    service = await startService({ database, config: "examples/langgraph.json", env });
    const url = await service.listen();
    const callbacks = ["one", "two"].map((provider_id) => `${url}/v2/auth/callback/${provider_id}`);
    oauth = await OAuthServer.start([CLIENT], callbacks);
    const keys = [await keyOf("ada"), await keyOf("bob"), await keyOf("backend", ["tokens", "service"])];
    ({ lines, complaints } = await runScenarios(python as string, "auth_scenarios.py", [url, oauth.url, ...keys]));
  }, 150_000);
  afterAll(async () => {
    await service.stop();
    await oauth.stop();
  });

  async function keyOf(user_id: string, scopes = ["tokens", "providers"]): Promise<string> {
    const body = { name: user_id, user_id, scopes };
    return (await service.request("POST", "/admin/keys", body, { "X-Api-Key": ROOT })).body.key;
  }

  it("passes all scenarios without warnings", () => {
    expect(complaints).toBe("");
    expect(lines.map(({ scenario }) => scenario)).toEqual(NAMES);
  });

  it.each(NAMES)("%s", (name) => {
    expect(lines.find(({ scenario }) => scenario === name)).toEqual({ scenario: name, ok: true });
  });
});
