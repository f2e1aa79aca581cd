import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { parseSse } from "../support/sse.ts";
import { Scenario } from "./scenario.ts";

const KEY = "key-one-0123456789abcdef";

describe.each(databases)("under a mount prefix on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, { MOUNT_PREFIX: "/agents", API_KEYS: KEY });
  });
  afterAll(() => api.stop());

  const send = (method: string, path: string, body?: object) =>
    api.send(method as "GET", path, body, { "X-Api-Key": KEY });
  const CHAIN = { assistant_id: "chain", input: { steps: ["in"] } };

  it("everything is served below it, and nothing elsewhere", async () => {
    expect((await send("GET", "/agents/ok")).status).toBe(200);
    expect((await send("GET", "/agents/openapi.json")).status).toBe(200);
    expect((await send("GET", "/agents/assistants/chain")).body.name).toBe("chain");
    expect((await send("GET", "/agents")).headers.get("location")).toBe("/agents/docs");
    for (const path of ["/ok", "/assistants/chain", "/agentsok", "/other/ok"]) {
      expect([path, (await send("GET", path)).status]).toEqual([path, 404]);
    }
  });

  it("each page of the API reference leads to the others and to its document", async () => {
    const linksOf = async (path: string) => {
      const { text } = await send("GET", path);
      const [navigation = ""] = /<nav>.*?<\/nav>/s.exec(text) ?? [];
      const urlOf = (link: string) => new URL(link, `http://localhost${path}`).pathname;
      const pages = [...navigation.matchAll(/href="([^"]+)"/g)].map(([, link]) => urlOf(link as string));
      const [, json = ""] = /href="([^"]+)">openapi\.json/.exec(text) ?? [];
      return { text, pages, json: urlOf(json) };
    };
    const { pages } = await linksOf("/agents/docs");
    expect(pages).toHaveLength(4);
    const paths = [
      "/agents/threads/{thread_id}/runs",
      "/api/v1/datasets/{dataset_id}",
      "/v2/deployments",
      "/admin/keys",
    ];
    for (const [n, page] of pages.entries()) {
      const reference = await linksOf(page);
      expect(reference.pages).toEqual(pages);
      expect((await send("GET", reference.json)).body.paths).toHaveProperty([paths[n] as string]);
      expect(reference.text).toContain(`<code>${paths[n]}</code>`);
      expect(reference.text).not.toContain("<script");
    }
  });

  it("keys are required as without a prefix", async () => {
    expect((await api.send("GET", "/agents/ok")).status).toBe(200);
    expect((await api.send("GET", "/agents/info")).status).toBe(200);
    for (const path of ["/agents/docs", "/agents/assistants/chain", "/agents/nowhere", "/info", "/nowhere"]) {
      expect([path, (await api.send("GET", path)).status]).toEqual([path, 401]);
    }
  });

  // Clients put the header behind their base URL, which ends with the prefix already.
  it.each(["/runs", "/runs/wait", "/runs/stream"])("the headers of POST %s hold the path below it", async (path) => {
    const { thread_id } = (await send("POST", "/agents/threads", {})).body;
    const answer = await send("POST", `/agents/threads/${thread_id}${path}`, CHAIN);
    expect(answer.headers.get("content-location")).toMatch(new RegExp(`^/threads/${thread_id}/runs/[0-9a-f-]{36}$`));
    const location = answer.headers.get("location");
    if (path !== "/runs") expect((await send("GET", `/agents${location}`)).status).toBe(200);
  });

  it("a broken stream continues where its Location says", async () => {
    const answer = await send("POST", "/agents/runs/stream", CHAIN);
    const again = await api.send("GET", `/agents${answer.headers.get("location")}`, undefined, {
      "X-Api-Key": KEY,
      "Last-Event-ID": "2",
    });
    expect(parseSse(again.text)).toEqual(parseSse(answer.text).slice(2));
  });
});
