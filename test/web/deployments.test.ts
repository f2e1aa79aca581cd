import { rmSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { PROJECT, temporaryFolder, writeFiles } from "../control/deployed-project.ts";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

/** A deployment is built and started within this time, in ms, also on a busy machine. */
const DEPLOYED_MS = 60_000;

describeInBrowser("the deployments", () => {
  let web: WebTest;
  let folder: string;
  /** Of the deployment that the tests make one after the other. */
  let id: string;
  beforeAll(async () => {
    web = await WebTest.start();
    folder = writeFiles(temporaryFolder(), {
      ...PROJECT,
      ".gitignore": "notes/\n*.tmp\n",
      "notes/plan.md": "not for everybody",
      "left.tmp": "x",
      ".env": "OPENAI_API_KEY=none",
    });
  });
  afterEach(() => web.closePages());
  afterAll(async () => {
    if (id) await web.service.request("DELETE", `/v2/deployments/${id}`);
    await web.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const get = async (path: string) => (await web.service.request("GET", path)).body;
  /** A run of the deployment, by its address. */
  const ask = async (input: object): Promise<{ env: Record<string, string> }> => {
    const response = await fetch(`${web.url}/deployments/shop/runs/wait`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ assistant_id: "agent", input }),
    });
    expect(response.status).toBe(200);
    return ((await response.json()) as { answer: { env: Record<string, string> } }).answer;
  };
  const rows = (page: Page) => page.getByRole("table", { name: "Revisions" }).getByRole("row");
  const chooseFolder = async (page: Page, chosen = folder) => {
    await page.getByLabel("Folder", { exact: true }).last().setInputFiles(chosen);
    await page.getByText(/^3 files/).waitFor();
  };

  it("explain what they are while there are none, and refuse a folder without a project", async () => {
    const page = await web.open("/deployments");
    await page.getByText("No deployments yet").waitFor();
    await page.keyboard.press("n");
    const empty = writeFiles(temporaryFolder(), { "readme.md": "nothing" });
    await page.getByLabel("Folder", { exact: true }).last().setInputFiles(empty);
    await page.getByText("The selected folder does not contain langgraph.json").waitFor();
    await expectAccessible(page);
    rmSync(empty, { recursive: true });
    await expect.poll(() => page.getByRole("button", { name: "Deploy", exact: true }).isDisabled()).toBe(true);
  });

  it("are created from a folder, without files that .gitignore excludes, and show the build live", async () => {
    const page = await web.open("/deployments?create=true");
    await page.getByLabel("Name", { exact: true }).last().fill("shop");
    await chooseFolder(page);
    await page.getByRole("button", { name: "Add secret" }).click();
    await page.getByLabel("Name of secret 1").fill("COLOUR");
    await page.getByLabel("Value of secret 1").fill("green");
    await page.getByRole("button", { name: "Deploy", exact: true }).click();
    await page.waitForURL(/\/deployments\/[0-9a-f-]{36}/);
    id = new URL(page.url()).pathname.split("/").pop() as string;
    const lines = page.getByRole("region", { name: "Log lines" });
    await lines.getByText(/\w/).nth(3).waitFor({ timeout: DEPLOYED_MS });
    await page.getByRole("tab", { name: "Revisions" }).click();
    await rows(page).getByText("Live").waitFor({ timeout: DEPLOYED_MS });
    await rows(page).getByText("deployed").waitFor();
    expect((await ask({ print: ["hello from the agent"] })).env.COLOUR).toBe("green");
    await page.getByText("Run agent from a terminal").click();
    await page.getByText(`curl -s ${web.url}/deployments/shop/runs/wait`).waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "API documentation" }).click();
    await page.waitForURL(`${web.url}/deployments/shop/docs`);
  });

  it("show what they write as they write it, by level and by text", async () => {
    const page = await web.open(`/deployments/${id}?tab=logs&logs=deploy`);
    const lines = page.getByRole("region", { name: "Log lines" });
    await lines.getByText("hello from the agent").waitFor();
    await ask({ print: ["another line"] });
    await lines.getByText("another line").waitFor();
    await page.getByLabel("Filter lines").fill("ANOTHER");
    await lines.getByText("hello from the agent").waitFor({ state: "detached" });
    await lines.getByText("another line").waitFor();
    await page.reload();
    await lines.getByText("another line").waitFor();
    await page.getByLabel("Filter lines").fill("");
    await page.getByRole("combobox", { name: "Level" }).click();
    await page.getByRole("option", { name: "error and above" }).click();
    await lines.getByText("another line").waitFor({ state: "detached" });
    await page.getByRole("combobox", { name: "Log", exact: true }).click();
    await page.getByRole("option", { name: "Build" }).click();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      tab: "logs",
      logs: "build",
      level: "ERROR",
    });
  });

  it("lead to the threads that failed, with the reason", async () => {
    const at = (path: string, body: object) =>
      fetch(`${web.url}/deployments/shop${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const { thread_id } = (await (await at("/threads", {})).json()) as { thread_id: string };
    await at(`/threads/${thread_id}/runs/wait`, { assistant_id: "agent", input: { print: 5 } });
    const page = await web.open("/?target=shop");
    const failed = page.getByRole("region", { name: "Failed threads" });
    await failed.getByText("is not iterable").waitFor();
    await page.goto(`${web.url}/app/runs?target=shop`);
    await page.getByRole("link", { name: "failed threads" }).click();
    await page.getByRole("table", { name: "Threads" }).getByText("Error").waitFor();
    await web.service.request("DELETE", `/deployments/shop/threads/${thread_id}`);
  });

  it("lead to a new thread with their agent", async () => {
    const page = await web.open("/deployments");
    await page.getByRole("link", { name: "shop", exact: true }).click();
    await page.getByRole("link", { name: "New thread" }).click();
    await page.getByRole("combobox", { name: "Target" }).getByText("shop").waitFor();
    await page
      .getByRole("button", { name: /^agent/ })
      .or(page.getByRole("link", { name: /^agent/ }))
      .waitFor();
  });

  it("are talked to and watched on the pages of this server's agents, until they are no longer live", async () => {
    const page = await web.open("/agents", { refused: [404] });
    const target = page.getByRole("combobox", { name: "Target" });
    const choose = async (name: RegExp) => {
      await target.click();
      await page.getByRole("option", { name }).click();
    };
    await page.getByText("support_desk").first().waitFor();
    await choose(/^shop/);
    await page.getByRole("link", { name: "agent", exact: true }).waitFor();
    expect(await page.getByText("support_desk").count()).toBe(0);
    await expectAccessible(page);
    await page.getByRole("link", { name: "New thread with agent" }).click();
    await page.getByRole("radio", { name: "JSON" }).click();
    await page.getByLabel("Input (JSON)").fill('{"print": ["said on the page"]}');
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("region", { name: "Content" }).getByText("answer", { exact: true }).waitFor();
    await page.getByRole("list", { name: "History" }).getByText("changed answer").waitFor();
    const thread_id = new URL(page.url()).pathname.split("/").pop();
    const statusAt = async (base: string) => (await fetch(`${web.url}${base}/threads/${thread_id}`)).status;
    expect([await statusAt("/deployments/shop"), await statusAt("")]).toEqual([200, 404]);

    await page.goto(`${web.url}/app/threads`);
    await page.getByRole("table", { name: "Threads" }).getByText("Idle").waitFor();
    await expect.poll(() => target.innerText()).toBe("shop");
    await expectAccessible(page);
    await page.goto(`${web.url}/app/runs`);
    await page.getByText("The runs of a deployment are listed per thread").waitFor();
    await page.goto(`${web.url}/app/experiments`);
    await page.getByRole("heading", { name: "Experiments", exact: true }).waitFor();
    expect(await target.count()).toBe(0);

    await page.goto(`${web.url}/app/threads`);
    await page.getByRole("table", { name: "Threads" }).getByRole("link").first().click();
    await page.getByRole("list", { name: "History" }).waitFor();
    const { pathname, search } = new URL(page.url());
    expect([pathname, search]).toEqual([`/app/threads/${thread_id}`, "?target=shop"]);
    await choose(/^This server/);
    await page.getByText("No threads yet").waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe("");
    await page.goBack();
    await page.getByRole("list", { name: "History" }).waitFor();
    await expect.poll(() => target.innerText()).toBe("shop");
    await page.goForward();
    await page.getByText("No threads yet").waitFor();
    await expect.poll(() => target.innerText()).toBe("This server");

    // The link of a thread, in the browser of a colleague who has not chosen the deployment, and one who has chosen another.
    const other = await web.open(`${pathname.slice("/app".length)}${search}`);
    await other.getByRole("list", { name: "History" }).getByText("changed answer").waitFor();
    await expect.poll(() => other.getByRole("combobox", { name: "Target" }).innerText()).toBe("shop");
    await other.getByRole("navigation").getByRole("link", { name: "Threads" }).first().click();
    await other.getByRole("table", { name: "Threads" }).getByText("Idle").waitFor();
    await expect.poll(() => new URL(other.url()).search).toBe("?target=shop");
    const here = (await web.service.request("POST", "/threads", {})).body.thread_id;
    await other.evaluate("localStorage.setItem('threadmill.target', 'shop')");
    await other.goto(`${web.url}/app/threads/${here}`);
    await other.getByRole("button", { name: `Copy ID ${here}` }).waitFor();
    await expect.poll(() => other.getByRole("combobox", { name: "Target" }).innerText()).toBe("This server");
    await other.close();
    await page.evaluate("localStorage.setItem('threadmill.target', 'gone')");
    await page.goto(`${web.url}/app/agents`);
    await page.getByText('Deployment "gone" is no longer live').first().waitFor();
    await page.getByText("support_desk").first().waitFor();
    await expect.poll(() => target.innerText()).toBe("This server");
  });

  it("use other secrets for a second revision, and roll back to the first", async () => {
    const page = await web.open(`/deployments/${id}?tab=secrets`);
    await page.getByRole("list", { name: "Secrets" }).getByText("COLOUR").waitFor();
    expect(await page.content()).not.toContain("green");
    await page.getByRole("button", { name: "Replace secrets" }).click();
    await page.getByText("replaces all secrets").waitFor();
    await expectAccessible(page);
    await page.getByLabel("Value of secret 1").fill("blue");
    await page.getByRole("button", { name: "Replace all secrets" }).click();
    await page.getByText("Deploying a revision with the new secrets").first().waitFor();
    await page.getByRole("tab", { name: "Revisions" }).click();
    await rows(page).nth(1).getByText("Live").waitFor({ timeout: DEPLOYED_MS });
    expect((await ask({})).env.COLOUR).toBe("blue");

    await rows(page).nth(2).getByRole("button", { name: "Roll back" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
    await rows(page).nth(2).getByText("Live").waitFor({ timeout: DEPLOYED_MS });
    expect((await ask({})).env.COLOUR).toBe("green");
    await expect.poll(() => rows(page).count()).toBe(3);
  });

  it("interrupt a build that does not end, while the live revision continues", async () => {
    const endless = writeFiles(temporaryFolder(), {
      "langgraph.json": JSON.stringify({ graphs: { agent: "./dist/agent.mjs:graph" } }),
      "package.json": JSON.stringify({ scripts: { build: "node build.mjs" } }),
      "build.mjs": `console.log("this takes its time"); setInterval(() => undefined, 60_000);`,
    });
    const page = await web.open(`/deployments/${id}`);
    await page.getByRole("button", { name: "New revision" }).click();
    await chooseFolder(page, endless);
    await page.getByRole("button", { name: "Deploy", exact: true }).click();
    const latest = rows(page).nth(1);
    await latest.getByText("building").waitFor({ timeout: DEPLOYED_MS });
    await latest.getByRole("button", { name: /^Logs/ }).click();
    await page.getByRole("region", { name: "Log lines" }).getByText("this takes its time").waitFor();
    await page.getByRole("tab", { name: "Revisions" }).click();
    // Two cannot be deployed at a time.
    expect(
      await rows(page)
        .getByRole("button", { name: /Roll back|Redeploy/ })
        .count(),
    ).toBe(0);
    await latest.getByRole("button", { name: "Interrupt" }).click();
    await page.getByText("Interrupting the revision. The live revision is not affected.").first().waitFor();
    await latest.getByText("interrupted", { exact: true }).waitFor();
    expect(await latest.getByRole("button", { name: "Interrupt" }).count()).toBe(0);
    // It was never deployed, so only the two revisions before it can be deployed again.
    await rows(page).nth(2).getByRole("button", { name: "Roll back" }).waitFor();
    expect(await latest.getByRole("button", { name: "Roll back" }).count()).toBe(0);
    expect((await get(`/v2/deployments/${id}/revisions`)).resources[0].status).toBe("INTERRUPTED");
    expect((await ask({})).env.COLOUR).toBe("green");
    rmSync(endless, { recursive: true });
  });

  it("say why a revision of another folder failed, while the one before serves", async () => {
    writeFiles(folder, { "langgraph.json": "no json" });
    const page = await web.open(`/deployments/${id}`);
    await page.getByRole("button", { name: "New revision" }).click();
    await chooseFolder(page);
    await page.getByRole("button", { name: "Deploy", exact: true }).click();
    await rows(page).nth(1).getByText("build failed").waitFor({ timeout: DEPLOYED_MS });
    await expect.poll(() => rows(page).nth(1).innerText()).toMatch(/json/i);
    await page
      .getByRole("alert")
      .getByText(/^The latest revision has failed: .*json/i)
      .waitFor();
    expect((await ask({})).env.COLOUR).toBe("green");
  });

  it("have the status of their latest revision while none is live", async () => {
    const page = await web.open("/deployments?create=true");
    await page.getByLabel("Name", { exact: true }).last().fill("broken");
    await chooseFolder(page);
    await page.getByRole("button", { name: "Deploy", exact: true }).click();
    await page.waitForURL(/\/deployments\/[0-9a-f-]{36}/);
    const broken = new URL(page.url()).pathname.split("/").pop();
    await page.getByRole("banner").getByText("build failed").waitFor({ timeout: DEPLOYED_MS });
    await page.goto(`${web.url}/app/`);
    const list = page.getByRole("region", { name: "Deployments" });
    await list.getByRole("listitem").filter({ hasText: "broken" }).getByText("build failed").waitFor();
    await web.service.request("DELETE", `/v2/deployments/${broken}`);
  });

  it.each([
    ["deployments", "", "build failed"],
    ["deployment", "/:id", "build failed"],
    ["deployment-logs", "/:id?tab=logs&logs=deploy&revision=:first", "another line"],
  ])("are accessible on wide and narrow screens, in light and dark themes: %s", async (name, path, text) => {
    const { resources } = await get(`/v2/deployments/${id}/revisions`);
    const address = `/deployments${path.replace(":id", id).replace(":first", resources.at(-1).id)}`;
    await takePictures(web, name, address, (page) => page.getByText(text).first().waitFor());
  });

  it("are deleted once their name was typed", async () => {
    const page = await web.open(`/deployments/${id}`, { refused: [404] });
    await page.getByRole("button", { name: "Delete deployment" }).click();
    const button = page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true });
    await expect.poll(() => button.isDisabled()).toBe(true);
    await page.getByLabel("Type “shop” to confirm").fill("shop");
    await expectAccessible(page);
    await button.click();
    await page.getByText("No deployments yet").waitFor({ timeout: DEPLOYED_MS });
    expect((await get("/v2/deployments")).resources).toEqual([]);
  });
});
