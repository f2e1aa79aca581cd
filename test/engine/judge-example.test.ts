import { once } from "node:events";
import { cpSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario, type Wire } from "../http/scenario.ts";
import { installed } from "../support/installed.ts";
import { createProject, type TestProject } from "../support/project.ts";

const packages = await installed("The judge of the examples", {
  "@langchain/openai": "1.6.0",
  "@langchain/langgraph": "1.7.3",
  "@langchain/core": "1.4.0",
});

const INPUT = { inputs: { question: "Where is it?" }, outputs: { answer: "On its way." }, expected: "Shipped." };

describe.skipIf(packages === undefined)("the judge of the examples", () => {
  /** The chat API of OpenAI. */
  let provider: Server;
  let answer: object;
  let asked: Wire;
  let project: TestProject;
  beforeAll(async () => {
    provider = createServer(async (request, response) => {
      asked = (await json(request)) as Wire;
      const message = { role: "assistant", content: JSON.stringify(answer) };
      const body = {
        ...{ id: "1", object: "chat.completion", created: 0, model: asked.model },
        choices: [{ index: 0, finish_reason: "stop", message }],
      };
      response.setHeader("content-type", "application/json").end(JSON.stringify(body));
    });
    await once(provider.listen(0, "127.0.0.1"), "listening");
    project = createProject({}, packages);
    const examples = join(import.meta.dirname, "../../examples");
    for (const folder of ["judge", "shared"])
      cpSync(join(examples, folder), join(project.folder, folder), { recursive: true });
  });
  afterAll(() => {
    project.drop();
    provider.closeAllConnections();
    provider.close();
  });

  const start = (env: Record<string, string>): Promise<Scenario> => {
    project.write("langgraph.json", JSON.stringify({ graphs: { judge: "./judge/graph.ts:graph" }, env }));
    return Scenario.start("sqlite", {}, { config: project.config, inline: false });
  };

  it("scores an output with the model and by the criteria of its assistant", async () => {
    const { port } = provider.address() as AddressInfo;
    const api = await start({ OPENAI_API_KEY: "key", OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` });
    const context = { model: "gpt-4.1", criteria: "The tone is friendly." };
    const { assistant_id } = await api.post("/assistants", { graph_id: "judge", name: "friendly", context });
    answer = { comment: "It is short, but polite.", score: 0.75 };
    expect(await api.post("/runs/wait", { assistant_id, input: INPUT })).toEqual({ ...INPUT, ...answer });
    expect(asked.model).toBe("gpt-4.1");
    expect(asked.messages[0].content).toContain("The tone is friendly.");
    expect(JSON.parse(asked.messages[1].content)).toEqual({
      ...{ inputs: INPUT.inputs, expected: INPUT.expected, output: INPUT.outputs },
    });
    answer = { comment: "Out of range.", score: 7 };
    const refused = await api.post("/runs/wait", { assistant_id, input: INPUT });
    expect(refused.__error__.message).toBe("The model returned the score 7 instead of one from 0 to 1.");
    const { context_schema } = await api.get(`/assistants/${assistant_id}/schemas`);
    expect(Object.keys(context_schema.properties)).toEqual(["model", "criteria"]);
    await api.stop();
  });

  it("says which key is missing", async () => {
    const api = await start({});
    const { __error__ } = await api.post("/runs/wait", { assistant_id: "judge", input: INPUT });
    expect(__error__.message).toContain("set OPENAI_API_KEY and install @langchain/openai");
    await api.stop();
  });
});
