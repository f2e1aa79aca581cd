import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listSource } from "../../src/cli/deployments/project.ts";
import type { Deployment, Revision } from "../../src/control-plane/contract/records.ts";
import { LANGGRAPH_JSON, PROJECT, temporaryFolder, writeFiles } from "../control/deployed-project.ts";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { freePort, runCli, type ServerProcess, startProcess } from "../support/process.ts";
import { until } from "../support/until.ts";

const KEY = "a-key-of-the-operator-0123456789abcdef";

describe("threadmill deploy", () => {
  let database: TestDatabase;
  let server: ServerProcess;
  const start = async () => {
    server = await startProcess({
      config: "test/graphs/shared/langgraph.json",
      data: database.data_dir,
      port: await freePort(),
      env: { API_KEYS: KEY, CANARY_OF_THE_SERVICE: "must not be seen" },
    });
  };
  beforeAll(async () => {
    database = await createDatabase("sqlite");
    await start();
  });
  afterAll(async () => {
    for (const { id } of await list()) await call("DELETE", `/v2/deployments/${id}`);
    // The rows go last, when processes and folders are gone.
    await until("all are gone", async () => (await list()).length === 0);
    server.child.kill("SIGTERM");
    await server.ended;
    await database.drop();
  });

  const call = async (method: string, path: string): Promise<Response> =>
    fetch(`${server.url}${path}`, { method, headers: { "x-api-key": KEY } });
  const list = async () =>
    ((await (await call("GET", "/v2/deployments")).json()) as { resources: Deployment[] }).resources;
  const deploy = (folder: string, ...flags: string[]) =>
    runCli(["deploy", folder, "--url", server.url, "--api-key", KEY, ...flags]);
  const revisionsOf = async ({ id }: Pick<Deployment, "id">) =>
    ((await (await call("GET", `/v2/deployments/${id}/revisions`)).json()) as { resources: Revision[] }).resources;

  it("deploys a folder, and prints its progress and the address", async () => {
    const folder = writeFiles(temporaryFolder(), {
      ...PROJECT,
      "package.json": JSON.stringify({ name: "@team/My_Agent" }),
      ".env": "OPENAI_API_KEY=sk-1\nEMPTY=\nLANGSMITH_PROJECT=mine\n",
    });
    const { status, stdout, stderr } = await deploy(folder);

    expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(`Deployed "my-agent": ${server.url}/deployments/my-agent\n`);
    const lines = stderr.split("\n");
    expect(lines[0]).toBe(
      "These variables are not sent as secrets, because their names are reserved: LANGSMITH_PROJECT.",
    );
    expect(lines[1]).toMatch(/^Packed 3 files from .* \(0\.0 MB\)\.$/);
    expect(lines).toEqual(expect.arrayContaining(["  Unpacking the source", "  Build complete.", "DEPLOYED"]));
    const [deployment] = (await list()).filter(({ name }) => name === "my-agent");
    expect(deployment?.secrets).toEqual([{ name: "OPENAI_API_KEY", value: "sk-1" }]);
  });

  it("deploys a project with a list of variables, some of them reserved or empty, and with empty fields", async () => {
    const env = ["OPENAI_API_KEY", "LANGSMITH_PROJECT", "EMPTY"];
    const langgraph = { ...JSON.parse(LANGGRAPH_JSON), env, python_version: "", http: { app: "" } };
    const folder = writeFiles(temporaryFolder(), { ...PROJECT, "langgraph.json": JSON.stringify(langgraph) });
    const given = { OPENAI_API_KEY: "sk-1", LANGSMITH_PROJECT: "mine", EMPTY: "" };
    const args = ["deploy", folder, "--name", "listed", "--url", server.url, "--api-key", KEY];
    const { status, stderr } = await runCli(args, given);
    expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" });
    writeFiles(folder, { "langgraph.json": JSON.stringify({ ...langgraph, env: "" }) });
    expect((await runCli(args, given)).status).toBe(0);
  });

  it("deploys the next revision of the same name, with the existing secrets, without the file of the field env", async () => {
    const langgraph = { ...JSON.parse(LANGGRAPH_JSON), env: "settings.env" };
    const folder = writeFiles(temporaryFolder(), {
      ...PROJECT,
      "langgraph.json": JSON.stringify(langgraph),
      "README.md": "two",
      "settings.env": "# None\nEMPTY=\n",
    });
    const { status, stdout, stderr } = await deploy(folder, "--name", "my-agent", "--json");
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringMatching(/^Packed 3 files/) });
    const printed = JSON.parse(stdout);
    const [deployment] = (await list()).filter(({ name }) => name === "my-agent");
    expect(printed).toEqual({
      deployment_id: deployment?.id,
      revision_id: deployment?.active_revision_id,
      name: "my-agent",
      status: "DEPLOYED",
      url: `${server.url}/deployments/my-agent`,
    });
    expect(deployment?.secrets).toEqual([{ name: "OPENAI_API_KEY", value: "sk-1" }]);
    expect(await revisionsOf({ id: printed.deployment_id })).toHaveLength(2);
  });

  it.each([
    ["a build fails", PROJECT, ["--build-command", "echo all is lost; exit 3"], /BUILD_FAILED.*all is lost/s],
    [
      "a graph does not load",
      { ...PROJECT, "agent.mjs": "throw new Error('no model')" },
      [],
      /DEPLOY_FAILED.*no model/s,
    ],
    ["a module is not there", { "langgraph.json": LANGGRAPH_JSON }, [], /BUILD_FAILED.*do not exist/s],
  ])("ends with status 1 and the reason when %s", async (what, files, flags, reason) => {
    const folder = writeFiles(temporaryFolder(), files as Record<string, string>);
    const { status, stderr } = await deploy(folder, "--name", what, ...flags);
    expect(status).toBe(1);
    expect(stderr).toMatch(reason);
    expect(stderr).not.toContain("must not be seen");
  });

  it("does not wait with --no-wait", async () => {
    const folder = writeFiles(temporaryFolder(), PROJECT);
    const { status, stdout } = await deploy(folder, "--name", "later", "--no-wait", "--json");
    expect(status).toBe(0);
    const { revision_id, deployment_id } = JSON.parse(stdout);
    await until("it is deployed", async () => {
      const revisions = await revisionsOf({ id: deployment_id });
      return revisions.find(({ id }) => id === revision_id)?.status === "DEPLOYED";
    });
  });

  it.each([
    ["there is no langgraph.json", {}, /does not contain langgraph.json/],
    ["langgraph.json is broken", { "langgraph.json": "{" }, /is not valid JSON/],
    [
      "a file of secrets is missing",
      { "langgraph.json": '{"graphs":{},"env":".env.prod"}' },
      /refers to the file .env.prod, which cannot be read/,
    ],
    [
      "a secret is not set",
      { "langgraph.json": '{"graphs":{},"env":["NOT_SET_HERE"]}' },
      /not contain every variable in the field "env"\. Missing: NOT_SET_HERE/,
    ],
  ])("sends nothing when %s", async (_, files, reason) => {
    const before = (await list()).length;
    const { status, stderr } = await deploy(writeFiles(temporaryFolder(), files as Record<string, string>));
    expect([status, (await list()).length]).toEqual([1, before]);
    expect(stderr).toMatch(reason);
  });

  it("leaves deployments running when the service stops, and the next service attaches to them", async () => {
    const [deployment] = (await list()).filter(({ name }) => name === "my-agent");
    const lines = async () => {
      const path = `/v2/deployments/${deployment?.id}/logs?type=deploy&limit=1000`;
      return ((await (await call("GET", path)).json()) as { logs: { id: string; message: string }[] }).logs;
    };
    const started = (await lines()).filter(({ message }) => message.includes("was started")).length;
    server.child.kill("SIGTERM");
    await server.ended;
    await start();
    await until("the service keeps it", async () => (await list()).some(({ name }) => name === "my-agent"));
    const { stdout } = await deploy(writeFiles(temporaryFolder(), PROJECT), "--name", "another", "--json");
    expect(JSON.parse(stdout).status).toBe("DEPLOYED");
    expect((await lines()).filter(({ message }) => message.includes("was started"))).toHaveLength(started);
  });
});

describe("the packed files", () => {
  it("are the files that git would add, without links, packages and secrets", async () => {
    const folder = temporaryFolder();
    writeFiles(folder, {
      ".gitignore": [
        "*.log",
        "!keep.log",
        "/only-here",
        "build/",
        "docs/**/*.tmp",
        "a?c",
        "x[0-9]",
        "y[z-a]",
        "\\#odd",
        "# no",
        "**/deep",
        "ends  ",
      ].join("\n"),
      "sub/.gitignore": "!again.log\nlocal/\n*.txt\n!sub.txt",
      "one.log": "",
      "keep.log": "",
      "only-here": "",
      "sub/only-here": "",
      "build/file": "",
      "sub/build/file": "",
      "sub/build.ts": "",
      "docs/a/b/c.tmp": "",
      "docs/c.tmp": "",
      "docs/c.md": "",
      abc: "",
      abbc: "",
      x1: "",
      xy: "",
      yz: "",
      "#odd": "",
      "@at": "",
      "p/q/deep/file": "",
      ends: "",
      "sub/again.log": "",
      "sub/one.log": "",
      "sub/local/file": "",
      "sub/sub.txt": "",
      "sub/other.txt": "",
      "ünïcode näme": "",
    });
    const git = (...args: string[]) => execFileSync("git", args, { cwd: folder, encoding: "utf8" });
    git("init", "--quiet");
    const expected = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0").filter(Boolean);
    expect((await listSource(folder)).paths.sort()).toEqual(expected.sort());

    writeFiles(folder, { "node_modules/x/index.js": "", ".env": "A=1", ".env.local": "A=1", ".env.example": "A=" });
    symlinkSync("/etc/passwd", `${folder}/link`);
    const { paths, links } = await listSource(folder);
    expect(paths.sort()).toEqual([...expected, ".env.example"].sort());
    expect(links).toEqual(["link"]);
  });

  it("leave out what .dockerignore names, relative to the root", async () => {
    const folder = writeFiles(temporaryFolder(), {
      ".dockerignore": "notes\n**/*.md\n!README.md\nweb/dist",
      "notes/a": "",
      "sub/notes/a": "",
      "README.md": "",
      "sub/x.md": "",
      "web/dist/a": "",
      "web/a": "",
    });
    expect((await listSource(folder)).paths).toEqual([".dockerignore", "README.md", "sub/notes/a", "web/a"]);
  });
});
