import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { experimentOf, type Row } from "../experiments/experiment.ts";
import { describeInBrowser, expectAccessible, WebTest } from "./browser.ts";

const ROWS = 12;
const NAMES = ["support agent v3", "support agent v4 with the handbook"];

/** A conversation as agents of LangGraph record it. Each answer differs between the experiments. */
const rowOf = (row: Row, index: number, experiment: number): Row => {
  const question = { role: "user", content: `${index + 1}. Where is the parcel of order ${1000 + index}, please?` };
  return {
    ...row,
    inputs: { messages: [{ role: "system", content: "Be brief." }, question], customer: `c-${index}` },
    expected_outputs: { messages: [{ role: "assistant", content: `Parcel ${index} is on its way.` }] },
    actual_outputs: {
      messages: [
        question,
        { role: "assistant", content: "", tool_calls: [{ id: "1", function: { name: "look_up", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "1", content: '{"status": "timeout"}' },
        { role: "assistant", content: `Experiment ${experiment}: parcel ${index} is in the van.` },
      ],
      language: "en",
    },
    evaluation_scores: [
      { key: "conciseness", score: 0.5 + ((index + experiment) % 5) / 10 },
      { key: "hallucination", score: experiment === 0 ? 0.125 : 0.5 },
    ],
    end_time: new Date(Date.parse(row.start_time) + 300 + 50 * experiment).toISOString(),
  };
};

describeInBrowser("payloads in the shape of a chat", () => {
  let web: WebTest;
  let dataset: string;
  const sessions: string[] = [];
  beforeAll(async () => {
    web = await WebTest.start();
    const ids = Array.from({ length: ROWS }, () => randomUUID());
    for (const [n, experiment_name] of NAMES.entries()) {
      const head = { dataset_name: "parcels", experiment_name };
      const body = experimentOf(
        ROWS,
        () => [],
        head,
        (index) => ids[index] as string,
      );
      const results = body.results.map((row, index) => rowOf(row, index, n));
      const made = await web.service.request("POST", "/api/v1/datasets/upload-experiment", { ...body, results });
      sessions.push(made.body.experiment.id);
      dataset = made.body.dataset.id;
    }
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const compare = (more = "") =>
    `/experiments/datasets/${dataset}/compare?experiments=${sessions.join(",")}&without=latency${more}`;
  const rowWith = (page: Page, text: string) => page.getByRole("row", { name: text });
  const choose = async (page: Page, side: string, option: string) => {
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("combobox", { name: side }).click();
    await page.getByRole("option", { name: option }).click();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
  };

  it("are the last message of each side in all tables", async () => {
    const compared = await web.open(compare());
    const text = await rowWith(compared, "3. Where is the parcel").innerText();
    expect(text).toContain("Parcel 2 is on its way.");
    expect(text).toContain("Experiment 0: parcel 2 is in the van.");
    expect(text).toContain("Experiment 1: parcel 2 is in the van.");
    const runs = await web.open(`/experiments/sessions/${sessions[0]}`);
    await expect
      .poll(() => rowWith(runs, "3. Where is the parcel").innerText())
      .toMatch(/Experiment 0: parcel 2[\s\S]*Parcel 2 is/);
    const examples = await web.open(`/experiments/datasets/${dataset}?tab=examples`);
    await expect
      .poll(() => rowWith(examples, "3. Where is the parcel").innerText())
      .toContain("Parcel 2 is on its way.");
  });

  it("are the value of a key that is chosen, or JSON, for this dataset in this browser", async () => {
    const page = await web.open(compare());
    await choose(page, "Input preview", "customer");
    await rowWith(page, "c-2").waitFor();
    await choose(page, "Output and expected preview", "JSON");
    await rowWith(page, "c-2").getByText('"role":"assistant"').first().waitFor();
    await page.goto(`${web.url}/app/experiments/sessions/${sessions[1]}`);
    await rowWith(page, "c-2").getByText('"role":"assistant"').first().waitFor();
    await choose(page, "Output and expected preview", "Automatic");
    await rowWith(page, "c-2").getByText("Experiment 1: parcel 2 is in the van.").waitFor();
  });

  it("of the rows before stay readable while other rows are loaded", async () => {
    const page = await web.open(compare());
    await rowWith(page, "Parcel 2 is on its way.").waitFor();
    const asked = Promise.withResolvers<void>();
    const answers = Promise.withResolvers<void>();
    await page.route(/\/compared-rows/, async (route) => {
      asked.resolve();
      await answers.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("combobox", { name: "Input preview" }).click();
    await page.getByRole("option", { name: "customer" }).click();
    await page.keyboard.press("Escape");
    await asked.promise;
    await expect.poll(() => rowWith(page, "Parcel 2 is on its way.").count()).toBe(1);
    await expectAccessible(page);
    answers.resolve();
    await rowWith(page, "c-2").waitFor();
  });

  it("are shown as they are in a row when they are plain texts, before the scores", async () => {
    const texts = ["1) *urgent*\n# 7", "2) *late*\n# 8", "3) *done*\n# 9"];
    const body = experimentOf(
      1,
      () => [],
      { dataset_name: "notes", experiment_name: "plain" },
      () => randomUUID(),
    );
    const [inputs, expected_outputs, actual_outputs] = texts.map((text) => ({ text }));
    const evaluation_scores = [{ key: "exact", score: 1 }];
    const results = body.results.map((row) => ({
      ...row,
      inputs,
      expected_outputs,
      actual_outputs,
      evaluation_scores,
    }));
    const made = await web.service.request("POST", "/api/v1/datasets/upload-experiment", { ...body, results });
    const { experiment, dataset: notes } = made.body;
    const page = await web.open(`/experiments/sessions/${experiment.id}`);
    await page.getByRole("row", { name: /2\) \*late/ }).click();
    const sheet = page.getByRole("dialog");
    await sheet.getByText("Scores").waitFor();
    await sheet.getByText("exact").waitFor();
    await expect
      .poll(() => sheet.getByRole("heading", { level: 3 }).allInnerTexts())
      .toEqual(["Input", "Expected", "Output", "Scores"]);
    // The code that draws Markdown would be loaded by now.
    await page.waitForLoadState("networkidle");
    for (const text of texts) await expect.poll(() => sheet.innerText()).toContain(text);
    await page.goto(`${web.url}/app/experiments/datasets/${notes.id}/compare?experiments=${experiment.id}`);
    await page.getByRole("row", { name: /2\) \*late/ }).click();
    await page.waitForLoadState("networkidle");
    await sheet.getByText("2) *late*").waitFor();
    await page.goto(`${web.url}/app/experiments/datasets/${notes.id}?tab=examples`);
    await page.getByRole("row", { name: /2\) \*late/ }).click();
    await page.waitForLoadState("networkidle");
    await sheet.getByText("2) *late*").waitFor();
  });

  it("are a conversation in a row, and JSON on demand that can be searched and copied", async () => {
    const page = await web.open(compare());
    await rowWith(page, "9. Where is the parcel").click();
    const run = page.getByRole("dialog").getByRole("region", { name: NAMES[0] });
    await run.getByText("Experiment 0: parcel 8 is in the van.").waitFor();
    const other = page.getByRole("dialog").getByRole("region", { name: NAMES[1] });
    const latency = other.getByTitle("Not tested for significance");
    await expect.poll(() => latency.innerText()).toMatch(/▼\s*worse\s*\+50 ms/);
    expect(await latency.locator(".text-worse, .text-better").count()).toBe(0);
    // The tool reports its failure in its text only.
    await expect.poll(() => run.locator("summary", { hasText: "look_up" }).innerText()).toMatch(/timeout/i);
    await run.getByRole("button", { name: "Output as JSON" }).click();
    const key = run.getByRole("button", { name: /^messages/ });
    await key.waitFor();
    await run.getByText("}", { exact: true }).first().waitFor();
    const leaf = run.getByText("en", { exact: true });
    expect(
      await leaf.evaluate((leaf) => leaf.ownerDocument.defaultView?.getComputedStyle(leaf, "::before").content),
    ).toBe('"\\""');
    await run.getByRole("button", { name: "Search JSON" }).click();
    await run.getByRole("searchbox", { name: "Search keys and values" }).fill("VAN");
    await run.getByRole("status").getByText("1 match").waitFor();
    await leaf.waitFor({ state: "detached" });
    await run.getByText("Experiment 0: parcel 8 is in the van.").waitFor();
    await expectAccessible(page);
    await run.getByRole("button", { name: "Copy value" }).click();
    const copied = JSON.parse((await page.evaluate("navigator.clipboard.readText()")) as string);
    expect(Object.keys(copied)).toEqual(["messages", "language"]);
    await run.getByRole("button", { name: "Output as JSON" }).click();
    await key.waitFor({ state: "detached" });
  });

  it("store that lower values of a score are better", async () => {
    const page = await web.open(compare());
    const line = page.getByRole("row", { name: /^hallucination/ });
    await line.getByText("12 better").waitFor();
    await page.getByRole("button", { name: "Settings of hallucination" }).click();
    await page.getByRole("menuitemcheckbox", { name: /Lower is better/ }).click();
    await line.getByText("lower is better").waitFor();
    await line.getByText("12 worse").waitFor();
    await page
      .getByRole("region", { name: "Differences from the baseline" })
      .getByText(/worse on hallucination/)
      .waitFor();
    await expectAccessible(page);
    // A difference of latency has no test, so it has no colour of better or worse.
    const latency = page.getByRole("row", { name: /^latency/ }).getByTitle("Not tested for significance");
    await expect.poll(() => latency.innerText()).toMatch(/▼\s*worse\s*\+50 ms/);
    expect(await latency.locator(".text-worse, .text-better").count()).toBe(0);
    // The key has a configuration now, which is changed.
    await page.getByRole("menuitemcheckbox", { name: /Lower is better/ }).click();
    await line.getByText("12 better").waitFor();
  });

  it("have rows of one line that cut no text in half, and columns that fill a wide screen", async () => {
    const page = await web.open(compare("&dense=true"));
    const row = rowWith(page, "9. Where is the parcel");
    await row.waitFor();
    const beyond = await row
      .getByRole("cell")
      .evaluateAll((cells) => cells.filter((cell) => cell.scrollHeight > cell.clientHeight).length);
    expect(beyond).toBe(0);
    const region = page.getByRole("region", { name: "Examples" });
    const hidden_px = () => region.evaluate((element) => element.scrollWidth - element.clientWidth);
    for (const width of [1280, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      await expect.poll(hidden_px).toBe(0);
    }
    await page.setViewportSize({ width: 1920, height: 1080 });
    const empty_px = () =>
      region.evaluate((element) => {
        const cells = [...element.querySelectorAll("[role=columnheader]")];
        return element.getBoundingClientRect().right - Math.max(...cells.map((c) => c.getBoundingClientRect().right));
      });
    await expect.poll(empty_px).toBeLessThan(60);
    // The names of the scores are whole.
    const names = region.getByRole("button", { name: /^hallucination/ });
    for (const width of [1440, 1920]) {
      await page.setViewportSize({ width, height: 1080 });
      await expect
        .poll(() => names.evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth).length))
        .toBe(0);
    }
  });
});
