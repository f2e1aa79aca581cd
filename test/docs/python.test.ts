import { execFile } from "node:child_process";
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder, writeFiles } from "../control/deployed-project.ts";
import { type DeployingServer, startDeployingServer } from "../support/deploying-server.ts";
import { PROGRAM } from "../support/program.ts";
import { until } from "../support/until.ts";
import { blocksIn, read } from "./page.ts";

const page = read("docs/python.md");
const sectionOf = (name: string) => page.split(/^## /m).find((part) => part.startsWith(`${name}\n`)) ?? "";
const blocks = blocksIn(sectionOf("Your own project"), "sh");

describe("docs/python.md, followed in an empty folder", () => {
  const folder = temporaryFolder();
  const bin = temporaryFolder();
  let server: DeployingServer;
  const here = (shown: string) => shown.replaceAll("http://localhost:2025", server.url);
  const run = async (script: string) => {
    const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
    return (await promisify(execFile)("bash", ["-ec", script], { cwd: folder, env, timeout: 240_000 })).stdout;
  };

  beforeAll(async () => {
    const [config = ""] = blocksIn(sectionOf("Your own project"), "json");
    const [agent = ""] = blocksIn(sectionOf("Your own project"), "python");
    writeFiles(folder, { "langgraph.json": config, "agent.py": agent });
    writeFiles(bin, { threadmill: `#!/bin/sh\nexec ${process.execPath} ${PROGRAM} "$@"\n` });
    chmodSync(join(bin, "threadmill"), 0o755);
    await run(blocks[0] as string);
    server = await startDeployingServer({ config: join(folder, "langgraph.json"), command: "dev", env: {} });
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("asks for a name and greets", async () => {
    const printed = await run(here(blocks[2] as string));
    expect(printed).toContain('"value":"What is your name?"');
    expect(printed).toContain('"content":"Hello, Ada!"');
  });

  it("loads the graph again when its file changes", async () => {
    const file = join(folder, "agent.py");
    writeFileSync(file, readFileSync(file, "utf8").replace("Hello, {name}!", "Good day, {name}!"));
    const { thread_id } = (await (await server.call("POST", "/threads", {})).json()) as { thread_id: string };
    const path = `/threads/${thread_id}/runs/wait`;
    await until("the graph is loaded again", async () => {
      await server.call("POST", path, { assistant_id: "agent", input: { messages: [] } });
      const answer = await server.call("POST", path, { assistant_id: "agent", command: { resume: "Ada" } });
      return (await answer.text()).includes("Good day, Ada!");
    });
  });

  it("is deployed", async () => {
    const [deploy = ""] = blocksIn(sectionOf("Deployments"), "sh");
    expect(await run(here(deploy))).toContain(`Deployed "greeter": ${server.url}/deployments/greeter`);
    const { thread_id } = (await (await server.call("POST", "/deployments/greeter/threads", {})).json()) as {
      thread_id: string;
    };
    const path = `/deployments/greeter/threads/${thread_id}/runs/wait`;
    const asked = await (await server.call("POST", path, { assistant_id: "agent", input: { messages: [] } })).text();
    expect(asked).toContain("What is your name?");
  });
});
