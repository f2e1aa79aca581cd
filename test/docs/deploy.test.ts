import { execFile, execFileSync, spawn } from "node:child_process";
import { chmodSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PACKAGE } from "../compat/langgraphjs.ts";
import { temporaryFolder, writeFiles } from "../control/deployed-project.ts";
import { type DeployingServer, startDeployingServer } from "../support/deploying-server.ts";
import { PROGRAM } from "../support/program.ts";
import { until } from "../support/until.ts";
import { blocksIn, ROOT, read } from "./page.ts";

const page = read("docs/deploy.md");

/** The blocks of a section, in their order. */
const blocks = (section: string, language = "sh") =>
  blocksIn(page.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? "", language);

describe("docs/deploy.md", () => {
  let server: DeployingServer;
  const top = temporaryFolder();
  const folder = join(top, "my-agent");
  const repository = temporaryFolder();
  /** What the shell of the page's reader knows by now. */
  const known: Record<string, string> = {};
  beforeAll(async () => {
    server = await startDeployingServer({
      config: "examples/langgraph.json",
      command: "dev",
      env: { THREADMILL_DEPLOY_GIT_PROTOCOLS: "file" },
    });
    // The command as it is, but for the address and the data folder of this service.
    const command = `exec ${process.execPath} ${PROGRAM} "$@"`;
    writeFiles(top, {
      "bin/threadmill": `#!/bin/sh\nif [ "$1" = keys ]; then ${command} --data ${server.data}; else ${command} --url ${server.url}; fi\n`,
    });
    chmodSync(join(top, "bin/threadmill"), 0o755);
  });
  afterAll(() => server.stop());

  const here = (shown: string) =>
    shown
      .replaceAll("http://localhost:2024", server.url)
      .replaceAll("https://github.com/me/my-agent.git", `file://${repository}`);
  const shellOf = (script: string, cwd: string) => {
    // One that waits for what does not come is not left behind.
    const timeout = 60_000;
    const env = { ...process.env, ...known, PATH: `${join(top, "bin")}${delimiter}${process.env.PATH}` };
    return ["bash", ["-ec", here(script)], { cwd, env, timeout }] as const;
  };
  const run = async (script: string, cwd = folder) => {
    const [file, args, options] = shellOf(script, cwd);
    return (await promisify(execFile)(file, args, options)).stdout;
  };
  /** Runs a block, and keeps the variables that it sets for the next ones. */
  const runAndKeep = async (script: string, ...names: string[]) => {
    const says = names.map((name) => `echo "kept ${name}=$${name}"`).join("\n");
    const stdout = await run(`${script}\necho\n${says}`);
    for (const [, name, value] of stdout.matchAll(/^kept (\w+)=(.*)$/gm)) known[name as string] = value as string;
    return stdout;
  };
  const greeting = async (name = "my-agent") => {
    const body = { assistant_id: "agent", input: { name: "Ada" } };
    const response = await server.call("POST", `/deployments/${name}/runs/wait`, body);
    return ((await response.json()) as { answer: string }).answer;
  };

  it("begins with what the README begins with", () => {
    expect(blocks("Start the service")).toEqual(["npm start\n"]);
    expect(read("README.md")).toContain("npm ci && npm start");
  });

  it("makes an agent and deploys it, to be called and streamed from", async () => {
    const [make = ""] = blocks("Create an agent");
    await run(make, top);
    const [deploy = "", call = ""] = blocks("Deploy the agent");
    const [shown = ""] = blocks("Deploy the agent", "text");
    expect(await run(deploy)).toBe(shown.replace("http://127.0.0.1:2024", server.url));
    const answered = await run(call);
    expect(answered).toContain('{"name":"Ada","answer":"Hello, Ada! Bye."}');
    expect(answered).toContain('data: {"greet":{"answer":"Hello, Ada!"}}');
    const [script = ""] = blocks("Deploy the agent", "js");
    const client = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", here(script)], {
      cwd: ROOT,
    });
    expect(client.stdout).toContain("updates { close: { answer: 'Hello, Ada! Bye.' } }");
  });

  it("makes the next revision, and follows what it writes", async () => {
    const [next = "", follow = ""] = blocks("Deploy an update");
    expect(await run(next)).toMatch(/\nmy-agent +live /);
    expect(await greeting()).toBe("Hello, Ada! See you.");
    const [file, args, options] = shellOf(follow, folder);
    const child = spawn(file, args, { ...options, detached: true, stdio: ["ignore", "pipe", "inherit"] });
    let printed = "";
    child.stdout.on("data", (chunk) => {
      printed += chunk;
    });
    const times = () => printed.split("Ada is here").length - 1;
    await until("what was written is shown", async () => times() > 0);
    const before = times();
    await greeting();
    await until("what is written now is shown", async () => times() > before);
    process.kill(-(child.pid as number), "SIGKILL");
    const [, build = ""] = /`(threadmill deployments logs my-agent --type build)`/.exec(page) ?? [];
    expect(await run(build)).toContain("Build complete.");
  });

  it("goes back, and gives the agent secrets", async () => {
    const [back = ""] = blocks("Roll back");
    expect(await run(back)).toMatch(/^Revision \S+ of "my-agent" is live\./);
    expect(await greeting()).toBe("Hello, Ada! Bye.");
    const [secrets = ""] = blocks("Secrets");
    await run(secrets);
    expect(await greeting()).toBe("Good evening, Ada! See you.");
  });

  it("deploys a git repository with requests, another revision, and the first again", async () => {
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: repository, stdio: "pipe" });
    const commit = () => {
      git("add", ".");
      git("commit", "--quiet", "-m", "a change");
    };
    await run(`cp agent.ts langgraph.json ${repository}`);
    git("init", "--quiet", "--initial-branch=main");
    commit();
    const [create = "", patch = ""] = blocks("Deploy with HTTP requests");
    const created = await runAndKeep(`${create}\ndeclare -f field end_of > functions`, "DEPLOYMENT", "FIRST");
    expect(created).toMatch(/"status": *"DEPLOYED"/);
    expect(created).toContain(`"custom_url":"${server.url}/deployments/from-git"`);
    expect(await greeting("from-git")).toBe("Hi, Ada! See you.");
    await run(`sed -i.old 's/See you/Farewell/' ${repository}/agent.ts`);
    commit();
    const [second = "", redeploy = ""] = patch.split("\n\n");
    expect(await runAndKeep(`. ./functions\n${second}`, "SECOND")).toMatch(/"status": *"DEPLOYED"/);
    expect(await greeting("from-git")).toBe("Hi, Ada! Farewell.");
    const { FIRST } = known;
    expect(JSON.parse(await run(redeploy)).active_revision_id).toBe(known.SECOND);
    await until("the first serves again", async () =>
      (await server.deployments()).some(({ active_revision_id }) => active_revision_id === FIRST),
    );
    expect(await greeting("from-git")).toBe("Hi, Ada! See you.");
  }, 120_000);

  it("deletes both", async () => {
    const [remove = ""] = blocks("Delete the deployments");
    await run(remove);
    await until("they are gone", async () => (await server.deployments()).length === 0);
  });

  it("deploys from CI with a key that may do nothing else", async () => {
    const [create = "", deploy = ""] = blocks("Deploy from CI");
    const [key = ""] = /tmk_\w+_[\w-]+/.exec(await run(create)) ?? [];
    await expect(run(deploy)).rejects.toThrow("A valid API key or JWT is required");
    server.key = known.THREADMILL_API_KEY = key;
    expect(await run(deploy)).toBe(`Deployed "my-agent": ${server.url}/deployments/my-agent\n`);
    expect((await server.call("POST", "/deployments/my-agent/runs/wait", {})).status).toBe(403);
  });

  it("names the versions of the official CLIs that the tests deploy with", () => {
    const [js = "", python = ""] = blocks("Use the official CLIs");
    expect(js).toContain(`npx ${PACKAGE} deploy `);
    expect(python).toContain(
      `pip install ${/^langgraph-cli==.*\n/m.exec(read("test/compat/python/requirements.txt"))?.[0]}`,
    );
  });
});
