import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, describe, expect, it } from "vitest";
import { freePort, runCli, type ServerProcess, startProcess } from "../support/process.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { openOn } from "../support/storage.ts";

let project: TestProject;
const servers: ServerProcess[] = [];

afterEach(async () => {
  for (const { child, ended } of servers.splice(0)) {
    child.kill("SIGKILL");
    await ended;
  }
  project?.drop();
});

const GOOD = { "langgraph.json": '{"graphs": {"good": "./good.mjs:graph"}}', "good.mjs": oneNodeGraph("one") };

const start = async (
  command: "dev" | "serve" = "serve",
  env?: Record<string, string>,
  flags?: string[],
): Promise<ServerProcess> => {
  const server = await startProcess({
    command,
    config: project.config,
    data: project.data,
    port: await freePort(),
    env,
    flags,
  });
  servers.push(server);
  return server;
};

const post = async ({ url }: ServerProcess, path: string, body: object) => {
  const response = await fetch(`${url}${path}`, { method: "POST", body: JSON.stringify(body) });
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  return { status: response.status, body: (await response.json()) as any };
};
const wait = async (server: ServerProcess, assistant_id: string) =>
  (await post(server, "/runs/wait", { assistant_id, input: {} })).body;

describe("a mistake in the configuration", () => {
  it.each([
    ["no file", {}, [], "langgraph.json does not exist or cannot be read"],
    ["no JSON", { "langgraph.json": "{" }, [], "is not valid JSON"],
    ["no graphs", { "langgraph.json": "{}" }, [], 'the field "graphs" must map graph names to paths'],
    ["no export", { "langgraph.json": '{"graphs": {"a": "./a.ts"}}' }, [], "graphs.a must have the form"],
    [
      "no env file",
      { "langgraph.json": '{"graphs": {"a": "./a.ts:g"}, "env": ".env"}' },
      [],
      'the field "env" refers to the file .env',
    ],
    ["an unset variable", { "langgraph.json": '{"graphs": {"a": "./a.ts:g"}, "env": ["NOT_SET_X"]}' }, [], "NOT_SET_X"],
    [
      "auth",
      { "langgraph.json": '{"graphs": {"a": "./a.ts:g"}, "auth": {"path": "./a.ts"}}' },
      [],
      'the field "auth.path" must be "./file.ts:exportName"',
    ],
    [
      "auth that is no object",
      { "langgraph.json": '{"graphs": {"a": "./a.ts:g"}, "auth": "./a.ts:x"}' },
      [],
      'the field "auth"',
    ],
    [
      "encryption in TypeScript",
      { "langgraph.json": '{"graphs": {"a": "./a.ts:g"}, "encryption": {"path": "./a.ts:x"}}' },
      [],
      "handlers must be in Python",
    ],
    [
      "encryption without a name",
      { "langgraph.json": '{"graphs": {"a": "./a.ts:g"}, "encryption": {"path": "./a.py"}}' },
      [],
      'the field "encryption.path" must be "./file.py:name"',
    ],
    ["a bad port", GOOD, ["--port", "99999"], "--port (or PORT) must be a whole number from 0 to 65535"],
    ["a bad database", GOOD, ["--database-url", "mysql://x"], "must have the form postgres://"],
    ["an open address without a key", GOOD, ["--host", "0.0.0.0"], "set API_KEYS"],
    ["an unknown option", GOOD, ["--nope"], "unknown option"],
  ])("(%s) ends the program with status 2 and one sentence that helps", async (_, files, args, sentence) => {
    project = createProject(files as Record<string, string>);
    for (const command of ["serve", "dev"]) {
      const { status, stderr } = await runCli([command, "--config", project.config, "--data", project.data, ...args]);
      expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(sentence) });
      expect(stderr.trim().split("\n").length).toBeLessThanOrEqual(2);
    }
  });

  it("is not an empty field, as project templates contain them", async () => {
    const empty = { env: "", auth: null, webhooks: false, python_version: "", http: { app: "", cors: null } };
    const langgraph = { graphs: { good: "./good.mjs:graph" }, ...empty };
    project = createProject({ ...GOOD, "langgraph.json": JSON.stringify(langgraph) });
    expect((await wait(await start(), "good")).answer).toBe("one");
  });

  it("a data folder that is in use names the process that has it", async () => {
    project = createProject(GOOD);
    const server = await start();
    const { status, stderr } = await runCli([
      "serve",
      "--config",
      project.config,
      "--data",
      project.data,
      "--port",
      "0",
    ]);
    expect(status).toBe(2);
    expect(stderr).toContain(`is in use. It was last opened by process ${server.child.pid}.`);
  });

  it("a port that another program uses ends the program with status 1, because it may become free", async () => {
    project = createProject(GOOD);
    const server = await start();
    const args = ["--config", project.config, "--data", `${project.data}-other`, "--port", new URL(server.url).port];
    const { status, stderr } = await runCli(["serve", ...args]);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining("choose another port or address"),
    });
  });

  it("a database of a newer version is refused", async () => {
    project = createProject(GOOD);
    const args = ["--data", project.data];
    expect((await runCli(["migrate", ...args])).stdout).toContain("Applied 001-agent-server");
    expect((await runCli(["migrate", ...args])).stdout).toContain("is up to date");
    const database = openOn({ data_dir: project.data, url: undefined, drop: async () => undefined });
    const { k } = database.read;
    await database.write((tx) => tx.run(sql`insert into schema_migrations values ('999-later', 0)`.compile(k)));
    await database.close();
    const { status, stderr } = await runCli(["serve", "--config", project.config, ...args]);
    expect(status).toBe(2);
    expect(stderr).toContain("Migrations unknown to this version: 999-later. Start the newer version.");
  });
});

it("--version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
  expect(await runCli(["--version"])).toEqual({ status: 0, stdout: `${version}\n`, stderr: "" });
});

it("--studio lets the hosted Studio use the agent server, and prints its address below that of the web app", async () => {
  project = createProject(GOOD);
  const server = await start("serve", {}, ["--studio"]);
  await server.printed(`https://smith.langchain.com/studio/?baseUrl=${encodeURIComponent(server.url)}`);
  expect(server.output()).toMatch(
    new RegExp(`Web app +${server.url}/app\n +API +${server.url}\n +API docs +${server.url}/docs\n`),
  );
  const answer = async (path: string, origin: string) => {
    const { status, headers } = await fetch(`${server.url}${path}`, { headers: { origin } });
    return [status, headers.get("access-control-allow-origin")];
  };
  const studio = "https://smith.langchain.com";
  expect(await answer("/info", studio)).toEqual([200, studio]);
  for (const path of ["/api/v1/datasets", "/v2/deployments"]) expect(await answer(path, studio)).toEqual([403, null]);
  expect(await answer("/info", "https://other.example")).toEqual([403, null]);
});

describe("fields of langgraph.json without an effect", () => {
  const fields = {
    ...{ store: { path: "./store.ts:store" }, grafs: 1 },
    // What asks for nothing, or for what is so anyway.
    ...{ node_version: "22", dependencies: ["."], dockerfile_lines: [], auth: { disable_studio_auth: true } },
  };
  const graphs = { good: { path: "./good.mjs:graph", description: "It is.", ui: "x" }, other: "./good.mjs:graph" };
  const files = { ...GOOD, "langgraph.json": JSON.stringify({ graphs, ...fields }) };

  it("are refused by serve, which names them", async () => {
    project = createProject(files);
    const { status, stderr } = await runCli(["serve", "--config", project.config, "--data", project.data]);
    expect(status).toBe(2);
    expect(stderr).toContain("graphs.good.ui, store.path, grafs would have no effect. Remove these fields");
  });

  it("are named by dev in one line", async () => {
    project = createProject(files);
    const server = await start("dev");
    expect((await wait(server, "good")).answer).toBe("one");
    expect(server.output()).toContain(
      "langgraph.json contains fields that have no effect: graphs.good.ui, store.path, grafs.",
    );
  });
});

describe("a graph that cannot be loaded", () => {
  const files = {
    "langgraph.json": '{"graphs": {"good": "./good.mjs:graph", "bad": "./bad.mjs:graph"}}',
    "good.mjs": oneNodeGraph("one"),
    "bad.mjs": 'throw new RangeError("at load");',
  };

  it("keeps serve from starting", async () => {
    project = createProject(files);
    const { status, stderr } = await runCli([
      "serve",
      "--config",
      project.config,
      "--data",
      project.data,
      "--port",
      "0",
    ]);
    expect(status).toBe(2);
    expect(stderr).toContain("graphs.bad could not be loaded (RangeError: at load)");
  });

  it("leaves the runs of an earlier process in the queue until the code is corrected", async () => {
    project = createProject({ ...GOOD, "good.mjs": oneNodeGraph("one", 3_600_000) });
    const first = await start("serve", { N_JOBS_PER_WORKER: "1" });
    const body = { assistant_id: "good", input: {} };
    // More than the service executes at once.
    for (let n = 0; n < 20; n++) await post(first, "/runs", body);
    const { thread_id } = (await post(first, "/threads", {})).body;
    const { run_id } = (await post(first, `/threads/${thread_id}/runs`, body)).body;
    first.child.kill("SIGKILL");
    await first.ended;
    // Long enough for a claim, as the import of large packages is.
    project.write("good.mjs", `await new Promise((resolve) => setTimeout(resolve, 2_000)); ${files["bad.mjs"]}`);
    const flags = ["--config", project.config, "--data", project.data, "--port", "0"];
    expect((await runCli(["serve", ...flags])).status).toBe(2);
    project.write("good.mjs", oneNodeGraph("two"));
    const { url } = await start();
    const run = `${url}/threads/${thread_id}/runs/${run_id}`;
    expect(await (await fetch(`${run}/join`)).json()).toEqual({ answer: "two" });
    const events = await (await fetch(`${run}/stream`, { headers: { "last-event-id": "-1" } })).text();
    expect(events.match(/(?<="attempt":)\d+/g)).toEqual(["1"]);
  });

  it("keeps serve from starting, even if it is the HTTP app", async () => {
    const langgraph = { graphs: { good: "./good.mjs:graph" }, http: { app: "./bad.mjs:app" } };
    project = createProject({ ...GOOD, ...files, "langgraph.json": JSON.stringify(langgraph) });
    const flags = ["--config", project.config, "--data", project.data, "--port", "0"];
    const { status, stderr } = await runCli(["serve", ...flags]);
    expect(status).toBe(2);
    expect(stderr).toContain("http.app could not be loaded (RangeError: at load). Fix the code");
  });

  it("because LangGraph for Python is missing prints an error with the fix", async () => {
    project = createProject({ ...files, "bad.py": "", "langgraph.json": '{"graphs": {"bad": "./bad.py:graph"}}' });
    const server = await start("dev");
    const wait = () => post(server, "/runs/wait", { assistant_id: "bad", input: {} });
    // The first request also loads the graphs. If that takes longer than a second, the status 200 is sent before.
    await wait();
    const { status, body } = await wait();
    expect(status).toBe(422);
    expect(body.detail).toMatch(
      /langgraph is not installed in .*; run: .* install "langgraph>=1.2"|no Python 3\.11 or later was found/,
    );
  });

  it("does not keep dev from starting, and requests for it get the reason", async () => {
    project = createProject(files);
    const server = await start("dev");
    expect((await wait(server, "good")).answer).toBe("one");
    const { status, body } = await post(server, "/runs/wait", { assistant_id: "bad", input: {} });
    expect({ status, detail: body.detail }).toEqual({
      status: 422,
      detail: 'The graph "bad" could not be loaded: RangeError: at load',
    });
  });
});

describe("dev", () => {
  it("reloads the graphs when a file changes; active runs finish with the old graphs", async () => {
    project = createProject({ ...GOOD, "good.mjs": oneNodeGraph("old", 1_500) });
    const server = await start("dev");
    const { thread_id } = (await post(server, "/threads", {})).body;
    const { run_id } = (
      await post(server, `/threads/${thread_id}/runs`, { assistant_id: "good", input: {}, stream_mode: "custom" })
    ).body;
    const stream = await fetch(`${server.url}/threads/${thread_id}/runs/${run_id}/stream`, {
      headers: { "last-event-id": "-1" },
    });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    let seen = "";
    while (!seen.includes("event: custom")) seen += new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
    project.write("good.mjs", oneNodeGraph("new"));
    await server.printed("Graphs reloaded.");
    expect((await wait(server, "good")).answer).toBe("new");
    const joined = await fetch(`${server.url}/threads/${thread_id}/runs/${run_id}/join`);
    expect(((await joined.json()) as { answer: string }).answer).toBe("old");
  });

  it("loads graphs and variables that are added", async () => {
    project = createProject(GOOD);
    const server = await start("dev");
    const more = `${oneNodeGraph("x").replace('"x"', "process.env.COLOUR")}`;
    writeFileSync(`${project.folder}/more.mjs`, more);
    project.write(
      "langgraph.json",
      '{"graphs": {"good": "./good.mjs:graph", "more": "./more.mjs:graph"}, "env": {"COLOUR": "blue"}}',
    );
    await server.printed("Graphs reloaded.");
    expect((await wait(server, "more")).answer).toBe("blue");
    rmSync(`${project.folder}/more.mjs`);
  });
});

describe("a graceful shutdown", () => {
  it("returns a long run to the queue without counting an attempt, and the next start finishes it", async () => {
    const steps = `${oneNodeGraph("x")}`.replace(
      /export const graph[\s\S]*/,
      `const step = async () => { await new Promise((r) => setTimeout(r, 400)); return { answer: "done" }; };
       const graphOf = (names) => names.reduce((g, n, i) => g.addNode(n, step).addEdge(names[i - 1] ?? "__start__", n), new StateGraph(State));
       export const graph = graphOf(["a", "b", "c", "d", "e", "f"]).addEdge("f", "__end__").compile();`,
    );
    project = createProject({ ...GOOD, "good.mjs": steps });
    const first = await start("serve", { BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0.1" });
    const { thread_id } = (await post(first, "/threads", {})).body;
    const run = (await post(first, `/threads/${thread_id}/runs`, { assistant_id: "good", input: {} })).body;
    first.child.kill("SIGTERM");
    await first.ended;
    const second = await start();
    const path = `${second.url}/threads/${thread_id}/runs/${run.run_id}`;
    expect(await (await fetch(`${path}/join`)).json()).toEqual({ answer: "done" });
    const events = await (await fetch(`${path}/stream`, { headers: { "last-event-id": "-1" } })).text();
    expect([...events.matchAll(/"attempt":(\d+)/g)].map((match) => match[1])).toEqual(["1", "1"]);
  });
});
