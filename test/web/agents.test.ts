import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createProject, type TestProject } from "../support/project.ts";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

/** Each picture takes a second or more. */
const PICTURES_MS = 180_000;

/** A graph whose input and context have schemas. */
const WRITER = `
import { END, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const State = z.object({
  topic: z.string().describe("What to write about."),
  tone: z.enum(["plain", "warm"]).default("plain"),
  words: z.number().int().optional(),
  loud: z.boolean().default(false),
  text: z.string().optional(),
});
const Context = z.object({ model: z.enum(["small", "large"]), temperature: z.number().optional() });

export const graph = new StateGraph(State, Context)
  .addNode("write", ({ topic, tone, words }, { context }) => ({
    text: [topic, tone, words ?? "any", context?.model, context?.temperature].join(" / "),
  }))
  .addEdge(START, "write").addEdge("write", END).compile();
`;

const CONFIG = JSON.stringify({
  graphs: { writer: { path: "./writer.ts:graph", description: "Writes a line." }, second: "./writer.ts:graph" },
});

describeInBrowser("agents", () => {
  let project: TestProject;
  let web: WebTest;
  beforeAll(async () => {
    project = createProject({ "writer.ts": WRITER, "langgraph.json": CONFIG });
    web = await WebTest.start({ config: project.config });
  });
  afterEach(() => web.closePages());
  afterAll(async () => {
    await web.stop();
    project.drop();
  });

  const heading = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 }).waitFor();
  const choose = async (page: Page, label: string, option: string) => {
    await page.getByLabel(label).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };

  it("are created, configured by the graph's schema, used by a run, restored to a version, and deleted", async () => {
    const page = await web.open("/agents?graph=writer");
    await page.getByRole("row", { name: /writer/ }).waitFor();
    expect(await page.getByRole("row", { name: /second/ }).count()).toBe(0);
    await page.getByRole("button", { name: "New assistant" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Tea writer");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create assistant" }).click();
    await heading(page, "Tea writer");

    const context = page.getByRole("region", { name: "Context" });
    await choose(page, "model", "large");
    await context.getByLabel("temperature").fill("0.5");
    await page.getByRole("region", { name: "Metadata" }).getByLabel("Metadata (JSON)").fill('{"team": "blue"}');
    await expectAccessible(page);
    await page.getByRole("button", { name: "Save as version 2" }).click();
    await page.getByText("Saved as version 2", { exact: true }).waitFor();
    await context.getByRole("radio", { name: "JSON" }).click();
    expect(JSON.parse(await context.getByLabel("Context (JSON)").inputValue())).toEqual({
      model: "large",
      temperature: 0.5,
    });

    await page.getByRole("link", { name: "New thread" }).click();
    await page.getByLabel("topic").fill("tea");
    await choose(page, "tone", "warm");
    await page.getByLabel("words").fill("7");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("tea / warm / 7 / large / 0.5").waitFor();

    await page.goto(`${web.url}/app/agents`);
    await page.getByRole("link", { name: "Tea writer", exact: true }).click();
    await page.getByRole("tab", { name: "Versions" }).click();
    await page
      .getByRole("row", { name: /Version 2/ })
      .getByText("Changed context, metadata")
      .waitFor();
    await page.getByRole("row", { name: /Version 1/ }).click();
    await page.getByRole("dialog", { name: "Version 1" }).getByText("graph_id:").waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get("version")).toBe("1");
    await page.getByRole("dialog").getByRole("button", { name: "Activate" }).click();
    await page.getByText("Version 1 is active", { exact: true }).waitFor();
    await page
      .getByRole("row", { name: /Version 1/ })
      .getByText("active")
      .waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();

    await page.getByRole("button", { name: "Delete assistant" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("“Tea writer” deleted", { exact: true }).waitFor();
    await page.getByRole("row", { name: /second/ }).waitFor();
    expect(await page.getByRole("row", { name: /Tea writer/ }).count()).toBe(0);
  });

  it("report invalid JSON, and do not save it", async () => {
    const page = await web.open("/agents");
    await page.getByRole("link", { name: "second", exact: true }).click();
    await page.getByRole("tab", { name: "Configuration" }).click();
    await page.getByLabel("Metadata (JSON)").fill("[1]");
    await page.getByText("Must be a JSON object").waitFor();
    await page.getByRole("button", { name: "Save as version 2" }).click();
    await page.getByLabel("Metadata (JSON)").fill('{"a": 1}');
    await page.getByRole("button", { name: "Save as version 2" }).click();
    await page.getByRole("button", { name: "Save as version 3" }).waitFor();
  });

  it("keep unsaved changes of the configuration when another user saves", async () => {
    const [{ assistant_id }] = (await web.service.request("POST", "/assistants/search", { graph_id: "second" })).body;
    const { body: before } = await web.service.request("GET", `/assistants/${assistant_id}`);
    const page = await web.open(`/agents/${assistant_id}?section=configuration`);
    await page.getByLabel("Description").fill("Written here");
    await web.service.request("PATCH", `/assistants/${assistant_id}`, { name: "Renamed", description: "Elsewhere" });
    const save = page.getByRole("button", { name: `Save as version ${before.version + 2}` });
    // The page asks again when it is looked at, at most every 5 seconds.
    await expect
      .poll(async () => {
        await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
        return save.isVisible();
      })
      .toBe(true);
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("Renamed");
    await expect.poll(() => page.getByLabel("Description").inputValue()).toBe("Written here");
    await save.click();
    await page.getByText(`Saved as version ${before.version + 2}`).waitFor();
    const { body: saved } = await web.service.request("GET", `/assistants/${assistant_id}`);
    expect(saved).toMatchObject({ name: "Renamed", description: "Written here" });
    await web.service.request("PATCH", `/assistants/${assistant_id}`, { name: "second", description: "" });
  });

  it("are drawn, with a text alternative for screen readers", async () => {
    const page = await web.open("/agents?q=writes");
    await page.getByRole("link", { name: "writer", exact: true }).click();
    await page.locator("[data-node=write]").waitFor();
    await expect
      .poll(() => page.locator("figcaption").innerText())
      .toMatch(/start, leads to write\s+write, leads to end\s+end/);
  });

  it("are drawn at the size and place that the user chooses", async () => {
    const page = await web.open("/agents?q=writes");
    await page.getByRole("link", { name: "writer", exact: true }).click();
    const node = page.locator("[data-node=write]");
    const box = async () => (await node.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await node.waitFor();
    const before = await box();
    await page.getByRole("button", { name: "Zoom In" }).click();
    await expect.poll(async () => (await box()).width).toBeGreaterThan(before.width * 1.1);
    const { x, y, width } = await box();
    await page.mouse.move(x + 2 * width, y);
    await page.mouse.down();
    await page.mouse.move(x + 2 * width + 50, y + 20);
    await page.mouse.up();
    await expect.poll(async () => Math.round((await box()).x - x)).toBe(50);
  });

  it("are drawn on the full screen, as large as they fit", async () => {
    const page = await web.open("/agents?q=writes");
    await page.getByRole("link", { name: "writer", exact: true }).click();
    const node = page.locator("[data-node=write]");
    await node.waitFor();
    const widthOf = async () => (await node.boundingBox())?.width ?? 0;
    const before = await widthOf();
    await page.getByRole("button", { name: "Full screen" }).click();
    await expect.poll(widthOf).toBeGreaterThan(before * 1.5);
    await page.getByRole("button", { name: "Exit full screen" }).click();
    await expect.poll(widthOf).toBeCloseTo(before);
  });

  it("that do not exist are reported as missing", async () => {
    const page = await web.open("/agents/00000000-0000-4000-8000-000000000000", { refused: [404] });
    await page.getByText("Assistant not found").waitFor();
    await page.getByRole("button", { name: "Try again" }).waitFor();
  });
});

describeInBrowser("the example agents", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start();
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  it("are accessible on wide and narrow screens, in light and dark themes", { timeout: PICTURES_MS }, async () => {
    const { body } = await web.service.request("POST", "/assistants/search", { graph_id: "support_desk" });
    const path = `/agents/${body[0].assistant_id}`;
    await takePictures(web, "agents", "/agents", (page) => page.getByText("support_desk").first().waitFor());
    await takePictures(web, "agent", path, (page) => page.locator("[data-node=approve]").waitFor());
    await takePictures(web, "agent-configuration", `${path}?section=configuration`, (page) =>
      page.getByLabel("recursion_limit").waitFor(),
    );
    await takePictures(web, "agent-versions", `${path}?section=versions`, (page) =>
      page.getByText("Initial version").waitFor(),
    );
  });

  it("are drawn with what is inside of their subgraphs when that is requested", async () => {
    const { body } = await web.service.request("POST", "/assistants/search", { graph_id: "research" });
    const page = await web.open(`/agents/${body[0].assistant_id}`);
    await page.locator("[data-node=study]").waitFor();
    await page.getByLabel("Expand subgraphs").check();
    await page.locator("[data-node='study:search']").waitFor();
    await expect.poll(() => page.url()).toContain("xray=true");
  });
});
