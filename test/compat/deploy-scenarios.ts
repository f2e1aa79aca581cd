import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AGENT, temporaryFolder, writeFiles } from "../control/deployed-project.ts";
import { type DeployingServer, startDeployingServer } from "../support/deploying-server.ts";
import { until } from "../support/until.ts";

const PROJECT = {
  "langgraph.json": JSON.stringify({ node_version: "22", env: ".env", graphs: { agent: "./agent.mjs:graph" } }),
  "agent.mjs": AGENT,
  ".gitignore": ".env\n",
  ".env": "GREETING=one\nLANGSMITH_PROJECT=mine\n",
  // Goes on when it is told to, so that the build is under way for as long as the test wants.
  "build.mjs": `
    import { existsSync } from "node:fs";
    console.log("a line of the build");
    const look = setInterval(() => existsSync(process.argv[2]) && clearInterval(look), 50);
  `,
};

/** What the clients wait between two looks at a revision is 3 s, and a deployment takes them several. */
const LIMIT_MS = 120_000;

/**
 * What people do with `deploy` of the official clients, which have the same flags and say the same in the same words.
 *
 * @param cli the program, with what comes before `deploy`
 */
export function deployScenarios(cli: readonly string[]): void {
  let server: DeployingServer;
  let folder: string;
  beforeAll(async () => {
    server = await startDeployingServer();
    folder = writeFiles(temporaryFolder(), PROJECT);
  });
  afterAll(() => server.stop());

  const start = (args: string[], { mount = "", key = server.key } = {}) => {
    const [program, ...first] = cli as [string, ...string[]];
    const where = ["--host-url", `${server.url}${mount}`, "--api-key", key];
    // Nothing of the machine's own, and no news of this run to the makers of the client.
    const env = { PATH: process.env.PATH, HOME: folder, LANGGRAPH_CLI_NO_ANALYTICS: "1", NO_COLOR: "1" };
    const child = spawn(program, [...first, "deploy", ...args, ...where], {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const ended = once(child, "close").then(([status]) => ({ status: status as number | null, stdout, stderr }));
    return {
      child,
      ended,
      printed: (text: string) => until(`"${text}" is printed`, async () => stdout.includes(text), LIMIT_MS),
    };
  };
  const run = (args: string[], at: { mount?: string; key?: string } = {}) => start(args, at).ended;
  const deploy = (...flags: string[]) => ["--remote", "--no-input", "--name", "my-agent", ...flags];
  const ask = async (input: object) => {
    const answer = await server.call("POST", "/deployments/my-agent/runs/wait", { assistant_id: "agent", input });
    return ((await answer.json()) as { answer: { env: Record<string, string> } }).answer;
  };
  const deployed = async () => {
    const [deployment] = await server.deployments();
    return deployment as NonNullable<typeof deployment>;
  };

  it(
    "creates a deployment, and prints its progress and the address",
    async () => {
      const { status, stdout, stderr } = await run(deploy("--json"), { mount: "/api-host" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const events = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      const { id, tenant_id, source, secrets } = await deployed();
      expect(events.filter(({ event }) => event === "step").map(({ message }) => message)).toEqual([
        "Looking up deployment 'my-agent'",
        "Creating deployment 'my-agent'",
        "Creating source archive",
        "Requesting upload URL",
        "Uploading source",
        "Triggering remote build",
      ]);
      expect(events.at(-1)).toMatchObject({
        event: "result",
        status: "succeeded",
        deployment_id: id,
        url: `${server.url}/deployments/my-agent`,
        status_url: expect.stringContaining(`/o/${tenant_id}/host/deployments/${id}`),
      });
      expect({ source, secrets }).toEqual({
        source: "internal_source",
        secrets: [{ name: "GREETING", value: "one" }],
      });
      expect((await ask({})).env).toMatchObject({ GREETING: "one" });
    },
    LIMIT_MS,
  );

  it(
    "prints the build log, and creates the next revision, which serves at the same address",
    async () => {
      writeFiles(folder, { ".env": "GREETING=two\n" });
      const go = join(folder, "go");
      const { printed, ended } = start(deploy("--verbose", "--build-command", `node build.mjs ${go}`));
      await printed("   | a line of the build\n");
      expect((await ask({})).env).toMatchObject({ GREETING: "one" });
      writeFiles(folder, { go: "" });
      const { status, stdout, stderr } = await ended;
      expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toContain(`   Deployment successful!\n   URL: ${server.url}/deployments/my-agent\n`);
      expect((await ask({})).env).toMatchObject({ GREETING: "two" });
      const { stdout: table } = await run(["revisions", "list", (await deployed()).id]);
      expect(table.match(/DEPLOYED|REPLACED/g)).toEqual(["DEPLOYED", "REPLACED"]);
    },
    LIMIT_MS,
  );

  it(
    "exits with status 1 and the last lines of a failed build; the previous revision keeps serving",
    async () => {
      const { status, stdout } = await run(deploy("--build-command", "node nothing.mjs"));
      expect(status).toBe(1);
      expect(stdout).toMatch(
        /Last build log lines:\n.*\$ node nothing\.mjs\n.*Cannot find module.*\n {3}Deployment failed\n/s,
      );
      expect((await ask({})).env).toMatchObject({ GREETING: "two" });
    },
    LIMIT_MS,
  );

  it("lists what is deployed, and where", async () => {
    const { id } = await deployed();
    const { status, stdout } = await run(["list"]);
    expect(status).toBe(0);
    const rows = stdout
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/ {2,}/));
    expect(rows.slice(2)).toEqual([[id, "my-agent", `${server.url}/deployments/my-agent`]]);
    expect((await run(["list", "--name-contains", "nothing"])).stdout).toBe("No deployments found.\n");
  });

  it("shows the logs of builds, and follows those of the serving revision", async () => {
    const build = await run(["logs", "--name", "my-agent", "--type", "build", "--level", "info"]);
    expect(build.stdout).toMatch(/^Using latest revision: [0-9a-f-]{36}\n(\[\S+] \[INFO] .*\n)+$/);
    const { child, printed, ended } = start(["logs", "--name", "my-agent", "--follow"]);
    await printed("[INFO] Threadmill ");
    await ask({ print: ["a line of the graph"] });
    await printed("a line of the graph\n");
    child.kill("SIGINT");
    const { stdout } = await ended;
    expect(stdout.slice(-10)).toBe("\nStopped.\n");
    expect(stdout.match(/a line of the graph/g)).toHaveLength(1);
  });

  it("prints why a request is refused", async () => {
    const refused = await run(["list"], { key: "nobody's" });
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/^Error: .* status 401: .*A valid API key or JWT is required/),
    ]);
    const body = { name: "runs only", user_id: "ada", scopes: ["agents"] };
    const { key } = (await (await server.call("POST", "/admin/keys", body)).json()) as { key: string };
    const stranger = await run(deploy(), { key });
    expect([stranger.status, stranger.stderr]).toEqual([
      1,
      expect.stringMatching(/^Error: GET \/v2\/deployments failed with status 403: .*deployments/),
    ]);
  });

  it("deletes a deployment", async () => {
    const { id } = await deployed();
    const { status, stdout } = await run(["delete", id, "--force"]);
    expect([status, stdout]).toEqual([0, `Deleted deployment ${id}.\n`]);
    await until("it is gone", async () => (await server.call("GET", `/v2/deployments/${id}`)).status === 404);
    expect((await run(["list"])).stdout).toBe("No deployments found.\n");
  });
}
