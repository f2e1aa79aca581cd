import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";

describe("a project without packages of its own", () => {
  let project: TestProject;
  let server: ServerProcess | undefined;
  afterEach(async () => {
    server?.child.kill("SIGKILL");
    await server?.ended;
    project.drop();
    server = undefined;
  });

  const bare = (files: Record<string, string>): void => {
    project = createProject(files);
    rmSync(join(project.folder, "node_modules"));
  };
  const answers = async (command: "dev" | "serve", graphs: Record<string, string>): Promise<unknown> => {
    project.write("langgraph.json", JSON.stringify({ graphs }));
    server = await startProcess({ config: project.config, data: project.data, port: await freePort(), command });
    const said: Record<string, unknown> = {};
    for (const assistant_id of Object.keys(graphs)) {
      const body = JSON.stringify({ assistant_id, input: {} });
      said[assistant_id] = await (await fetch(`${server.url}/runs/wait`, { method: "POST", body })).json();
    }
    return said;
  };

  it.each(["dev", "serve"] as const)("gets LangGraph from Threadmill, with %s", async (command) => {
    bare({
      "module.mjs": oneNodeGraph("module"),
      "typed.ts": `enum E { A = "typed" }\n${oneNodeGraph("").replace('answer: ""', "answer: E.A")}`,
      "required.cjs": oneNodeGraph("required")
        .replace(/import (.*) from "(.*)";/, 'const $1 = require("$2");')
        .replace("export const graph", "exports.graph"),
      // Of the other package, by a path within it.
      "message.mjs": `import { AIMessage } from "@langchain/core/messages";\n${oneNodeGraph("").replace('answer: ""', 'answer: new AIMessage("").getType()')}`,
    });
    const graphs = {
      module: "./module.mjs:graph",
      typed: "./typed.ts:graph",
      required: "./required.cjs:graph",
      message: "./message.mjs:graph",
    };
    expect(await answers(command, graphs)).toEqual({
      module: { answer: "module" },
      typed: { answer: "typed" },
      required: { answer: "required" },
      message: { answer: "ai" },
    });
  });
});
