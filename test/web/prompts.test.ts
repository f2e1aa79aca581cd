import { ChatPromptTemplate, MessagesPlaceholder, PromptTemplate } from "@langchain/core/prompts";
import { Client } from "langsmith";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { AGO, describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

describeInBrowser("the pages of prompts", () => {
  let web: WebTest;
  let client: Client;
  beforeAll(async () => {
    web = await WebTest.start();
    client = new Client({ apiUrl: `${web.url}/api/v1`, webUrl: web.url, apiKey: "any" });
  });
  afterEach(() => web.closePages());
  afterAll(async () => {
    client.cleanup();
    await web.stop();
  });

  const first = ChatPromptTemplate.fromMessages([
    ["system", "You speak {language}.\nAnswer as JSON: {{}}"],
    new MessagesPlaceholder({ variableName: "history", optional: true }),
    [
      "human",
      [
        { type: "text", text: "See {input}" },
        { type: "image_url", image_url: "{url}" },
      ],
    ],
  ]);
  const second = ChatPromptTemplate.fromMessages([
    ["system", "You speak {language}, briefly."],
    ["human", "{input}"],
  ]);

  it("begin with how to push a prompt, then list and search them", async () => {
    const page = await web.open("/prompts");
    await page.getByText("No prompts yet").waitFor();
    await page.getByText(`Client(api_url="${web.url}/api/v1")`).waitFor();
    await expectAccessible(page);
    await client.pushPrompt("greeting", { object: first, description: "Greets people", tags: ["demo"] });
    await client.pushPrompt("summary", { object: PromptTemplate.fromTemplate("Sum up {text}") });
    await page.reload();
    const row = page.getByRole("row", { name: /greeting/ });
    await row.waitFor();
    const { last_commit_hash } = (await client.getPrompt("greeting")) ?? {};
    expect((await row.innerText()).split(/\s*\n\s*/)).toEqual(
      expect.arrayContaining(["greeting", last_commit_hash?.slice(0, 8), "1", "demo", "Greets people"]),
    );
    await page.getByRole("searchbox").fill("people");
    await page.getByRole("row", { name: /summary/ }).waitFor({ state: "detached" });
    await expect.poll(() => new URL(page.url()).search).toBe("?q=people");
    await page.getByRole("searchbox").fill("nothing");
    await page.getByText("No prompts match “nothing”").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder(/Search pages/).fill("summary");
    await page.getByRole("option", { name: /summary/ }).click();
    await page.getByText("Sum up {text}").waitFor();
  });

  it("open at the URL that the client returns, with the messages of the commit and how to use it", async () => {
    const url = await client.pushPrompt("answers", { object: first, commitTags: ["prod"] });
    const page = await web.open("/prompts");
    await page.goto(url);
    await page.getByRole("heading", { name: "answers", level: 1 }).waitFor();
    const messages = page.getByRole("list", { name: "Messages" }).getByRole("listitem");
    await messages.first().waitFor();
    expect((await messages.allInnerTexts()).map((text) => text.split(/\s*\n\s*/))).toEqual([
      ["System", "You speak {language}.", "Answer as JSON: {{}}"],
      ["Messages", "{history} (optional)"],
      ["Human", "See {input}", "{", "url:", "{url}", "}"],
    ]);
    await expect.poll(() => messages.locator("code").allInnerTexts()).toEqual(["{language}", "{history}", "{input}"]);
    const hash = (await client.pullPromptCommit("answers")).commit_hash.slice(0, 8);
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/app/prompts/answers/${hash}`);
    await page.getByText(`client.pull_prompt("answers:${hash}")`).waitFor();
    await page.getByText(/prompt\.invoke\(\{\s+"language": "\.\.\.",\s+"history": \[\],/).waitFor();
    await page.getByRole("radio", { name: "JavaScript" }).click();
    await page.getByText(`client.pullPromptCommit("answers:${hash}")`).waitFor();
    await expectAccessible(page);

    await client.pushPrompt("answers", { object: second, commitDescription: "Shorter" });
    await page.reload();
    const commits = page.getByRole("list", { name: "Commits" }).getByRole("link");
    await commits.first().waitFor();
    expect((await commits.allInnerTexts()).map((text) => text.split(/\s*\n\s*/))).toEqual([
      [expect.any(String), expect.stringMatching(AGO), "Shorter", "latest"],
      [hash, expect.stringMatching(AGO), "prod"],
    ]);
    await commits.first().click();
    await page.getByText("You speak {language}, briefly.").waitFor();
    await page.goto(`${web.url}/app/prompts/answers/prod`);
    await page.getByText("Answer as JSON").waitFor();
    await page
      .getByText('client.pullPromptCommit("answers:prod")')
      .or(page.getByText('pull_prompt("answers:prod")'))
      .waitFor();
    await page.goto(`${web.url}/app/prompts/answers`);
    await page.getByText('client.pull_prompt("answers")').waitFor();
    await page.getByText("You speak {language}, briefly.").waitFor();
  });

  it("show other manifests as JSON, a missing commit, and hostile text as text", async () => {
    const html = '<img src="https://evil.test/a.png" onerror="window.hit = 1">';
    await client.pushPrompt("chain.json", {
      object: { lc: 1, type: "constructor", id: ["x"], kwargs: { steps: [html] } },
    });
    const page = await web.open("/prompts/chain.json", { refused: [404] });
    await page.getByText("Manifest").waitFor();
    await page.getByText(html).waitFor();
    await client.createPrompt("empty", { readme: `# Read\n\n${html}` });
    await page.goto(`${web.url}/app/prompts/empty`);
    await page.getByText("No commits yet").waitFor();
    await page.getByRole("heading", { name: "Read", exact: true }).waitFor();
    expect(await page.evaluate("window.hit")).toBe(undefined);
    await page.goto(`${web.url}/app/prompts/empty/abcdef12`);
    await page.getByRole("alert").getByText("abcdef12").waitFor();
    await expectAccessible(page);
  });

  it("are accessible on both sizes and in both themes", async () => {
    await client.pushPrompt("support", {
      object: first,
      description: "Answers questions of customers from the documentation",
      tags: ["support", "chat"],
      readme: "Used by the **support agent**.",
      commitTags: ["prod"],
    });
    await client.pushPrompt("support", {
      object: second,
      commitDescription: "Shorter answers",
      commitTags: ["staging"],
    });
    await takePictures(web, "prompts", "/prompts", (page) => page.getByText("support").first().waitFor());
    await takePictures(web, "prompt", "/prompts/support/prod", (page) => page.getByText("Answer as JSON").waitFor());
  });
});
