import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario } from "../http/scenario.ts";
import { installed } from "../support/installed.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";

const packages = await installed("The embeddings of a provider", {
  "@langchain/openai": "1.6.0",
  "@langchain/langgraph": "1.7.3",
  "@langchain/core": "1.4.0",
});

const WORDS = ["cat", "dog", "car"];

describe.skipIf(packages === undefined)("store.index.embed with the name of a provider", () => {
  /** The embeddings API of OpenAI. */
  let provider: Server;
  const requests: { model: string; authorization: string | undefined }[] = [];
  let project: TestProject;
  beforeAll(async () => {
    provider = createServer(async (request, response) => {
      const { model, input } = (await json(request)) as { model: string; input: string | string[] };
      requests.push({ model, authorization: request.headers.authorization });
      const data = [input].flat().map((text, index) => ({
        object: "embedding",
        index,
        embedding: WORDS.map((word) => text.split(word).length - 1),
      }));
      response.setHeader("content-type", "application/json").end(JSON.stringify({ object: "list", model, data }));
    });
    await once(provider.listen(0, "127.0.0.1"), "listening");
    project = createProject({ "graph.mjs": oneNodeGraph("a") }, packages);
  });
  afterAll(() => {
    project.drop();
    provider.closeAllConnections();
    provider.close();
  });

  const start = async (embed: string): Promise<Scenario> => {
    const { port } = provider.address() as AddressInfo;
    const env = { OPENAI_API_KEY: "key", OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` };
    const graphs = { graph: "./graph.mjs:graph" };
    project.write("langgraph.json", JSON.stringify({ graphs, env, store: { index: { embed, dims: 3 } } }));
    return Scenario.start("sqlite", {}, { config: project.config, inline: false });
  };
  const put = (api: Scenario, key: string, text: string) =>
    api.send("PUT", "/store/items", { namespace: ["a"], key, value: { text } });

  it("embeds texts with the model of the project's package", async () => {
    const api = await start("openai:text-embedding-3-small");
    expect((await put(api, "cats", "a cat and a cat")).status).toBe(204);
    expect((await put(api, "cars", "a car")).status).toBe(204);
    const { items } = await api.post("/store/items/search", { namespace_prefix: ["a"], query: "car" });
    expect(items.map(({ key, score }: { key: string; score: number }) => [key, score])).toEqual([
      ["cars", 1],
      ["cats", 0],
    ]);
    const request = { model: "text-embedding-3-small", authorization: "Bearer key" };
    expect(requests).toEqual([request, request, request]);
    await api.stop();
  });

  it("names a package that is missing", async () => {
    const api = await start("cohere:embed-v4.0");
    const refused = await put(api, "cats", "a cat");
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.body.detail).toContain(`npm install @langchain/cohere`);
    await api.stop();
  });
});
