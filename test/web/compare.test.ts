import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { parse } from "csv-parse/sync";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { experimentOf, type Row } from "../experiments/experiment.ts";
import { describeInBrowser, expectAccessible, hueOf, takePictures, WebTest } from "./browser.ts";

const ROWS = 240;
const NAMES = ["small v3", "small v4", "large v1"];

const METADATA = NAMES.map((name) => ({
  model: name.split(" ")[0] as string,
  temperature: Number(name.at(-1)) / 10,
  region: "eu",
}));

const TOPICS = ["passwords", "invoices", "deliveries", "refunds", "opening hours", "gift cards", "warranties"];

/** From 0 to 1, the same for the same arguments. */
const chance = (a: number, b: number): number => {
  const x = Math.sin(a * 12.9898 + b * 78.233) * 43_758.5453;
  return x - Math.floor(x);
};

/** v4 is better than v3 in `correct`, v1 worse; a higher `toxicity` is worse. Example 17 is the worst of v1. */
function rowOf(row: Row, index: number, experiment: number): Row {
  const topic = TOPICS[index % TOPICS.length] as string;
  const correct = chance(index, 1) + ([0, 0.14, -0.12][experiment] as number) > 0.3;
  const similarity = index === 16 && experiment === 2 ? 0 : 0.4 + 0.6 * chance(index, experiment + 5);
  const said = correct ? `You find ${topic} on your account page, below Settings.` : `I cannot help with ${topic}.`;
  return {
    ...row,
    inputs: { question: `${index + 1}. How do I ask about ${topic} when the shop is closed on a holiday?` },
    expected_outputs: { answer: `You find ${topic} on your account page.` },
    actual_outputs: experiment === 2 ? { answer: said, sources: [topic, index] } : { answer: said },
    error: index % 60 === 7 + experiment ? "TimeoutError: the model did not answer within 30 s" : null,
    end_time: new Date(Date.parse(row.start_time) + 300 + 900 * chance(index, experiment)).toISOString(),
    run_metadata: { model: NAMES[experiment]?.split(" ")[0] },
    evaluation_scores: [
      { key: "correct", score: correct, ...(!correct && { comment: "It refuses." }) },
      { key: "similarity", score: Math.round(similarity * 1000) / 1000 },
      // Every fifth example has none in v4.
      ...(experiment === 1 && index % 5 === 0 ? [] : [{ key: "toxicity", score: chance(index, experiment + 9) / 10 }]),
      { key: "tone", value: correct ? "friendly" : "curt" },
    ],
  };
}

describeInBrowser("the compare page", () => {
  let web: WebTest;
  let dataset: string;
  const sessions: string[] = [];
  beforeAll(async () => {
    web = await WebTest.start();
    const ids = Array.from({ length: ROWS }, () => randomUUID());
    for (const [n, experiment_name] of NAMES.entries()) {
      const body = experimentOf(
        ROWS,
        () => [],
        { dataset_name: "shop questions", experiment_name, experiment_metadata: METADATA[n] },
        (index) => ids[index] as string,
      );
      const results = body.results.map((row, index) => rowOf(row, index, n));
      // The first example ran twice in v4.
      if (n === 1) results.push({ ...(results[0] as Row), actual_outputs: { answer: "Let me look." } });
      const { body: answer } = await post("/api/v1/datasets/upload-experiment", { ...body, results });
      sessions.push(answer.experiment.id);
      dataset = answer.dataset.id;
    }
    await post("/api/v1/feedback-configs", {
      feedback_key: "toxicity",
      feedback_config: { type: "continuous", min: 0, max: 1 },
      is_lower_score_better: true,
    });
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const post = (path: string, body: object) => web.service.request("POST", path, body);
  const address = (more = "") => `/experiments/datasets/${dataset}/compare?experiments=${sessions.join(",")}${more}`;
  const open = async (more?: string, options?: Parameters<WebTest["open"]>[1]) => {
    const page = await web.open(address(more), options);
    await ready(page);
    return page;
  };
  const ready = async (page: Page) => {
    await page.getByText(/\d example/).waitFor();
    await page.getByText("p <0.001").first().waitFor();
    await page.getByText("How do I ask").first().waitFor();
  };
  const cell = (page: Page, key: string, experiment: number) =>
    page
      .getByRole("row", { name: new RegExp(`^${key}`) })
      .getByRole("cell")
      .nth(experiment);
  const shows = (page: Page, text: string) => page.getByRole("status").filter({ hasText: text }).waitFor();
  const search = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);
  const compare = async () =>
    (
      await post(`/api/v1/datasets/${dataset}/compare`, {
        baseline_session_id: sessions[0],
        comparison_session_ids: sessions.slice(1),
      })
    ).body.comparisons as {
      session_id: string;
      key: string;
      wins: number;
      losses: number;
    }[];
  const pair = async (session: number, key: string) => {
    const found = (await compare()).find((each) => each.session_id === sessions[session] && each.key === key);
    return found as NonNullable<typeof found>;
  };

  it("shows what differs from the baseline, by how much, and whether that is significant", async () => {
    const page = await open();
    await expect.poll(() => cell(page, "correct", 0).innerText()).toMatch(/0\.\d+[\s\S]*n 240/);
    const { wins, losses } = await pair(1, "correct");
    const better = await cell(page, "correct", 1).innerText();
    expect(better).toMatch(/▲\s*better\s*\+0\.\d+\s*\[0\.\d+, 0\.\d+\]/);
    expect(better).toMatch(new RegExp(`${wins} better[\\s\\S]*${losses === 0 ? "0 worse" : losses}`));
    await expect.poll(() => cell(page, "correct", 2).innerText()).toMatch(/▼\s*worse\s*−0\.\d+[\s\S]*p <0\.001/);
    await expect.poll(() => cell(page, "similarity", 1).innerText()).toContain("n.s.");
    await expect.poll(() => cell(page, "toxicity", 1).innerText()).toContain("n 192 of 240");
    await expect.poll(() => page.getByRole("row", { name: /^toxicity/ }).innerText()).toContain("lower is better");
    await expect.poll(() => cell(page, "tone", 0).innerText()).toMatch(/friendly\s*\d+/);
    await expect.poll(() => cell(page, "errors", 0).innerText()).toContain("4 (1.7 %)");
  });

  it("gives an experiment the same hue in the matrix, the table, the details, the list and the trends", async () => {
    const page = await open();
    const rows = page.getByRole("table", { name: "Examples" });
    const matrix = page.getByRole("region", { name: "Scores by experiment" });
    const hues: Record<string, Set<string>> = {};
    const note = async (name: string, at: Locator) => {
      hues[name] ??= new Set();
      hues[name].add(await hueOf(at, name));
    };
    for (const name of NAMES) for (const at of [matrix, rows]) await note(name, at);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const sheet = page.getByRole("dialog");
    for (const name of NAMES) await note(name, sheet);
    await page.goto(`${web.url}/app/experiments/datasets/${dataset}`);
    for (const name of NAMES) await note(name, page.getByRole("table"));
    const point = page.getByRole("region", { name: "Trends across experiments" }).locator("g", { hasText: NAMES[2] });
    hues["large v1"]?.add((await point.locator("circle").first().getAttribute("style"))?.replace(/\D/g, "") ?? "");
    expect(Object.values(hues).map(({ size }) => size)).toEqual([1, 1, 1]);
    expect(new Set(Object.values(hues).flatMap((each) => [...each])).size).toBe(3);
  });

  it("requests its rows while its own code is still loading", async () => {
    const page = await web.open("/experiments");
    const asked = page.waitForRequest(/compared-rows$/);
    await page.route(/assets\/compare-page/, async (route) => {
      await asked;
      await route.continue();
    });
    await page.goto(`${web.url}/app${address()}`);
    await ready(page);
  });

  it("narrows the table to the examples behind a number, and keeps that in the address", async () => {
    const page = await open();
    const { losses } = await pair(2, "similarity");
    await page.getByRole("button", { name: `${losses} worse for similarity in large v1` }).click();
    await shows(page, `${losses} examples`);
    expect(search(page)).toMatchObject({ change: "worse", changeKey: "similarity", changeIn: sessions[2] });
    // The worst of them comes first, with how far it is off.
    const first = () => page.getByRole("rowgroup").last().getByRole("row").first();
    await first().getByText("17. How do I ask").waitFor();
    await expect.poll(() => first().getByRole("cell").last().innerText()).toMatch(/0\.000 ▼ −0\.\d\d?/);
    const again = await web.open(new URL(page.url()).pathname.replace("/app", "") + new URL(page.url()).search);
    await again.getByText("17. How do I ask").first().waitFor();
    await shows(again, `${losses} examples`);
    await again.getByRole("button", { name: "Remove filter large v1 · similarity · worse" }).click();
    await shows(again, "240 examples");
    // The same number shows all of them again, in the order of the dataset.
    await page.getByRole("button", { name: `${losses} worse for similarity in large v1` }).click();
    await shows(page, "240 examples");
    await first().getByText("1. How do I ask").waitFor();
    expect(search(page)).not.toHaveProperty("sort");
  });

  it("says in a sentence what got worse, and shows its examples with the most toxic first where lower is better", async () => {
    const page = await open();
    const verdict = page.getByRole("region", { name: "Differences from the baseline" });
    const sentences = await verdict.getByRole("button", { name: / is (worse|better) on / }).allInnerTexts();
    expect(sentences.map((text) => text.replace(/\s+/g, " "))).toEqual([
      expect.stringMatching(/^▼ large v1 is worse on correct: −0\.\d+, p <0\.001$/),
      expect.stringMatching(/^▲ small v4 is better on correct: \+0\.\d+, p <0\.001$/),
    ]);
    await verdict.getByRole("button", { name: "large v1 is worse on correct" }).click();
    await shows(page, `${(await pair(2, "correct")).losses} examples`);
    const { losses } = await pair(1, "toxicity");
    await page.getByRole("button", { name: `${losses} worse for toxicity in small v4` }).click();
    await shows(page, `${losses} examples`);
    expect(search(page)).toMatchObject({ sortKey: "toxicity", delta: "true" });
    expect(search(page)).not.toHaveProperty("ascending");
    await page.getByRole("button", { name: "Sort", exact: true }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Worst first" }).click();
    await page.getByRole("radio", { name: "Best first" }).click();
    await expect.poll(() => search(page).ascending).toBe("true");
    await page.keyboard.press("Escape");
    await verdict.getByRole("button", { name: "Legend" }).click();
    await page
      .getByText(
        "192 examples have a score in both experiments and are compared. 200 examples have a score in at least one of the two",
      )
      .waitFor();
    await page.getByText("Set as baseline").waitFor();
    await expectAccessible(page);
  });

  it("sorts by a click on a score above the table, and filters by what was chosen last", async () => {
    const page = await open();
    const first = page.getByRole("table", { name: "Examples" }).getByRole("rowgroup").last().getByRole("row").first();
    const by = page.getByRole("button", { name: "similarity in large v1", exact: true });
    await by.click();
    await first.getByText("17. How do I ask").waitFor();
    await page.getByRole("img", { name: "worst first" }).waitFor();
    await by.click();
    await page.getByRole("img", { name: "best first" }).waitFor();
    await expect.poll(() => first.getByRole("cell").last().innerText()).toMatch(/▲ \+0\.\d/);
    await by.click();
    await first.getByText("1. How do I ask").waitFor();
    await page.getByRole("button", { name: "large v1", exact: true }).click();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await expect.poll(() => page.getByLabel("Experiment", { exact: true }).innerText()).toBe("large v1");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Sort", exact: true }).click();
    await page.getByLabel("Sort by").click();
    await page.getByRole("option", { name: "Score difference from baseline" }).click();
    await expect.poll(() => page.getByLabel("Experiment", { exact: true }).innerText()).toBe("large v1");
    await expect.poll(() => page.getByRole("radio", { name: "Worst first" }).getAttribute("aria-checked")).toBe("true");
    await page.getByLabel("Experiment", { exact: true }).click();
    await expect.poll(() => page.getByRole("option").allInnerTexts()).toEqual(["small v4", "large v1"]);
  });

  it("filters by a range of scores, by failures, by words and by an expression", async () => {
    const page = await open();
    const add = async (kind: string, fill: () => Promise<unknown>) => {
      await page.getByRole("button", { name: "Filter", exact: true }).click();
      await page.getByLabel("Filter by").click();
      await page.getByRole("option", { name: kind }).click();
      await fill();
      await page.getByRole("button", { name: "Apply filter" }).click();
      await page.keyboard.press("Escape");
    };
    const remove = () => page.getByRole("button", { name: /^Remove filter/ }).click();
    await add("Score range", () => page.getByLabel("Max", { exact: true }).fill("0"));
    await page.getByRole("button", { name: "Remove filter small v4 · correct ≤ 0" }).waitFor();
    const failures = (await post(`/app/api/datasets/${dataset}/compared-rows`, {
      session_ids: sessions,
      scores: [{ session_id: sessions[1], key: "correct", max: 0 }],
    })) as { body: { total: number } };
    await shows(page, `${failures.body.total} examples`);
    await remove();
    await add("Failed runs", async () => undefined);
    await shows(page, "4 examples");
    await remove();
    await page.keyboard.press("/");
    await page.keyboard.type("gift cards");
    await shows(page, "34 examples");
    await page.getByLabel("Search inputs").fill("");
    await shows(page, "240 examples");
    await add("Expression", () => page.getByLabel("Expression").fill('gt(latency, "1.19s")'));
    await page.getByRole("button", { name: 'Remove filter small v4 · gt(latency, "1.19s")' }).waitFor();
    const slow = await post(`/api/v1/datasets/${dataset}/runs`, {
      session_ids: sessions,
      filters: { [sessions[1] as string]: ['gt(latency, "1.19s")'] },
      preview: true,
    });
    await shows(page, `${slow.body.length} example`);
  });

  it("goes through rows by keyboard, with what was expected and what differs", async () => {
    const page = await open();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const sheet = page.getByRole("dialog");
    await sheet.getByText("1 of 240").waitFor();
    await sheet.getByText("Run 2 of 2").waitFor();
    await sheet.getByRole("region", { name: "small v4" }).locator("ins, del, p").first().waitFor();
    await page.keyboard.press("j");
    await sheet.getByText("2 of 240").waitFor();
    await page.keyboard.press("k");
    await sheet.getByText("1 of 240").waitFor();
    expect(search(page).row).toBeDefined();
    await sheet.getByLabel("Outputs").click();
    await page.getByRole("option", { name: "Diff against expected" }).click();
    const large = sheet.getByRole("region", { name: "large v1" });
    await large.getByText("sources").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    expect(search(page).row).toBeUndefined();
  });

  it("renders the visible part of the table, and gives screen readers the row and column numbers", async () => {
    const page = await open("&without=");
    await page.setViewportSize({ width: 800, height: 700 });
    const table = page.getByRole("table", { name: "Examples" });
    const region = page.getByRole("region", { name: "Examples" });
    const columns = () =>
      table
        .locator("[role=rowgroup] [role=row] >> nth=0")
        .locator("[role=cell]")
        .evaluateAll((cells) => cells.map((cell) => Number(cell.getAttribute("aria-colindex"))));
    await expect.poll(() => table.getAttribute("aria-colcount")).toBe("6");
    await expect.poll(columns).toEqual([1, 2, 3, 4, 5]);
    await region.evaluate((element) => element.scrollTo(2_000, 1_000_000));
    // Those that stay at the left are there wherever it is scrolled to.
    await expect.poll(columns).toEqual([1, 2, 5, 6]);
    await table.getByRole("cell", { name: /^240\. How do I ask/ }).waitFor();
    const last = table.locator("[role=row][aria-rowindex='241']");
    await expect.poll(() => table.getAttribute("aria-rowcount")).toBe("241");
    const places = async (cells: Locator) =>
      (await Promise.all((await cells.all()).map((cell) => cell.boundingBox()))).map((box) => box?.x);
    const drawn = table.getByRole("columnheader").filter({ hasNotText: /Expected|small v3/ });
    await expect.poll(() => places(last.getByRole("cell"))).toEqual(await places(drawn));
    await expectAccessible(page);
  });

  it("scrolls to the row that a key selects until it is fully visible", async () => {
    const page = await open();
    const region = page.getByRole("region", { name: "Examples" });
    const isSeen = () =>
      region.evaluate((element) => {
        const [outer, head, row] = [element, ...element.querySelectorAll("[aria-rowindex='1'], [aria-selected]")].map(
          (each) => each.getBoundingClientRect(),
        );
        return Boolean(outer && head && row && row.top >= head.bottom && row.bottom <= outer.bottom);
      });
    for (let n = 0; n < 12; n++) await page.keyboard.press("j");
    await region.locator("[aria-rowindex='13'][aria-selected]").waitFor();
    await expect.poll(isSeen).toBe(true);
    for (let n = 0; n < 10; n++) await page.keyboard.press("k");
    await region.locator("[aria-rowindex='3'][aria-selected]").waitFor();
    await expect.poll(isSeen).toBe(true);
  });

  it("opens the row of a URL, including one outside the visible range, and goes on from it", async () => {
    const { body } = await post(`/app/api/datasets/${dataset}/compared-rows`, {
      session_ids: sessions,
      offset: 200,
      limit: 1,
    });
    const page = await open(`&row=${body.rows[0].example_id}`);
    await page.getByRole("dialog").getByText("201 of 240").waitFor();
    await page.getByRole("dialog").getByText("Example #201").waitFor();
    const next = page.getByRole("button", { name: "Next row (j)" });
    await expect.poll(() => next.isEnabled()).toBe(true);
    await page.keyboard.press("j");
    await page.getByRole("dialog").getByText("202 of 240").waitFor();
  });

  it("shows the experiments of a row in the order of the table", async () => {
    const page = await open(`&baseline=${sessions[2]}`);
    await page.getByText(/^2\. How do I ask/).click();
    const regions = page.getByRole("dialog").getByRole("region", { name: /^(small|large) v\d$/ });
    await regions.nth(2).waitFor();
    const names = await regions.evaluateAll((all) => all.map((each) => each.getAttribute("aria-label")));
    expect(names).toEqual(["large v1", "small v3", "small v4"]);
  });

  it("accepts scores and comments in place, and shows the resulting statistics", async () => {
    const page = await open();
    await page.getByText(/^3\. How do I ask/).click();
    const run = page.getByRole("dialog").getByRole("region", { name: "small v3" });
    await run.getByRole("button", { name: "Add score" }).click();
    await run.getByLabel("Key").fill("reviewed");
    // A key without a value says nothing.
    await expect.poll(() => run.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await run.getByRole("spinbutton", { name: "Score" }).fill("0.5");
    await run.getByLabel("Comment").fill("Half of it is there.");
    await run.getByRole("button", { name: "Save" }).click();
    await run.getByText("Half of it is there.").waitFor();
    await cell(page, "reviewed", 0).getByText("0.500", { exact: true }).waitFor();
    await run.getByRole("button", { name: "Edit reviewed" }).click();
    await run.getByRole("spinbutton", { name: "Score" }).fill("1");
    await run.getByRole("button", { name: "Save" }).click();
    await cell(page, "reviewed", 0).getByText("1.000", { exact: true }).waitFor();
    await expectAccessible(page);
    await run.getByRole("button", { name: "Delete reviewed" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("row", { name: /^reviewed/ }).waitFor({ state: "detached" });
  });

  it("shows one experiment below the other on a phone, and leaves room for the examples once they are filtered", async () => {
    const page = await open("", { narrow: true });
    const matrix = page.getByRole("region", { name: "Scores by experiment" });
    const { losses } = await pair(2, "correct");
    const beyond_px = await matrix.locator("> div").evaluate((element) => element.scrollWidth - element.clientWidth);
    expect(beyond_px).toBe(0);
    const size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]";
    await expect.poll(() => page.evaluate(size)).toEqual([390, 844]);
    // All of it scrolls together.
    await expect.poll(() => page.getByRole("main").evaluate(COUNT_SCROLLED)).toBe(1);
    const large = matrix.getByRole("region", { name: "large v1" });
    await large.getByRole("button", { name: `${losses} worse for correct in large v1` }).click();
    await page.getByRole("button", { name: "Scores by experiment", expanded: false }).waitFor();
    await large.waitFor({ state: "detached" });
    await shows(page, `${losses} examples`);
    const list = page.getByRole("region", { name: "Examples" });
    expect((await list.boundingBox())?.height).toBeGreaterThan(340);
    const card = list.getByRole("listitem").first();
    await expect.poll(() => card.innerText()).toMatch(/^#(\d+) \1\. How do I ask/);
    await card.getByText("How do I ask").click();
    // What it is judged by, whole, and the buttons beside it.
    const run = page.getByRole("dialog").getByRole("region", { name: "large v1" });
    await run.getByText("It refuses.").waitFor();
    const button = await run.getByRole("button", { name: "Delete correct" }).boundingBox();
    expect((button?.x ?? 0) + (button?.width ?? 0)).toBeLessThanOrEqual(390);
  });

  it("changes the baseline, hides and adds experiments by key and by name", async () => {
    const page = await open();
    await page.keyboard.press("l");
    await page.keyboard.press("b");
    await expect.poll(() => search(page).baseline).toBe(sessions[2]);
    await cell(page, "correct", 1).getByText(/▲/).first().waitFor();
    await page.getByRole("combobox", { name: "Baseline" }).click();
    await page.getByRole("option", { name: "small v3" }).click();
    await page
      .getByRole("columnheader", { name: /small v3 \(baseline\)/ })
      .first()
      .waitFor();
    await page.getByRole("button", { name: "small v4", exact: true }).click();
    await page.keyboard.press("x");
    await page.getByRole("button", { name: "1 hidden" }).click();
    await page.getByRole("button", { name: "small v4", exact: true }).waitFor();
    await page.getByRole("button", { name: "Experiments" }).click();
    await page.getByRole("checkbox", { name: "small v4" }).uncheck();
    await page.getByText("2 of 10").waitFor();
    expect(search(page).experiments).toBe([sessions[0], sessions[2]].join(","));
    await page.getByRole("checkbox", { name: "small v4" }).check();
    await page.getByText("3 of 10").waitFor();
  });

  it("exports the view: the filtered rows with the visible columns", async () => {
    const page = await open(`&failed=${sessions[0]}&without=score:tone,score:toxicity`);
    const downloading = page.waitForEvent("download");
    await page.keyboard.press("e");
    const csv = await readFile(await (await downloading).path(), "utf8");
    const rows = parse(csv, { columns: true }) as Record<string, string>[];
    expect(rows.map(({ number }) => number)).toEqual(["8", "68", "128", "188"]);
    expect(rows[0]).toMatchObject({ "small v3: error": "TimeoutError: the model did not answer within 30 s" });
    expect(Object.keys(rows[0] ?? {})).toContain("large v1: similarity");
    expect(Object.keys(rows[0] ?? {})).not.toContain("large v1: toxicity");
    const again = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByRole("menuitem", { name: /\(JSON\)/ }).click();
    const json = JSON.parse(await readFile(await (await again).path(), "utf8"));
    expect(json[0].experiments[2].scores).toEqual({ correct: expect.any(Number), similarity: expect.any(Number) });
    await page.getByText("Exported 4 examples to comparison.json").first().waitFor();
  });

  it("copies a summary as Markdown that has the differences of the matrix", async () => {
    const page = await open();
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByRole("menuitem", { name: "Copy summary as Markdown" }).click();
    await page.getByText("Summary copied as Markdown").first().waitFor();
    const lines = (await page.evaluate<string>("navigator.clipboard.readText()")).split("\n");
    expect(lines[0]).toBe("| Experiment | correct | similarity | toxicity (lower is better) | Errors |");
    expect(lines[2]).toMatch(/^\| small v3 \(baseline\) \| 0\.\d+ \| 0\.\d+ \| 0\.\d+ \| 1\.7 % \|$/);
    const { wins, losses } = await pair(1, "correct");
    expect(lines[3]).toMatch(
      new RegExp(
        `^\\| small v4 \\| 0\\.\\d+ \\(\\*\\*\\+0\\.\\d+\\*\\* \\[0\\.\\d+, 0\\.\\d+\\], p <0\\.001; ${wins} better, ${losses} worse\\)`,
      ),
    );
    expect(lines).toContain(page.url());
  });

  it("has numbers with the same precision in each column, also of the lists of runs and of experiments", async () => {
    const numbersOf = async (page: Page, name: string, key: string) => {
      const table = page.getByRole("table", { name });
      const head = table.getByRole("columnheader", { name: key });
      const cells = table.locator(`[role=cell][aria-colindex="${await head.getAttribute("aria-colindex")}"]`);
      await cells.filter({ hasText: /\d/ }).first().waitFor();
      return (await cells.allInnerTexts()).filter((text) => text !== "–");
    };
    const runs = await web.open(`/experiments/sessions/${sessions[0]}`);
    const experiments = await web.open(`/experiments/datasets/${dataset}`);
    for (const key of ["similarity", "toxicity"])
      for (const [page, name] of [
        [runs, "Runs of the experiment"],
        [experiments, "Experiments"],
      ] as const)
        expect((await numbersOf(page, name, key)).filter((text) => !/^\d\.\d{3}$/.test(text))).toEqual([]);
  });

  it("shows the metadata in which the experiments differ, and no others", async () => {
    const page = await open();
    await page.getByRole("button", { name: "Metadata" }).click();
    const table = page.getByRole("region", { name: "Metadata" });
    await table.getByRole("row", { name: "model small small large" }).waitFor();
    await table.getByRole("row", { name: "temperature 0.3 0.4 0.1" }).waitFor();
    await table.getByText("Number of hidden keys (same value in all experiments): 1").waitFor();
    expect(await table.getByText("region").count()).toBe(0);
    await expectAccessible(page);
  });

  it("colors scores from the worst to the best of their key", async () => {
    const page = await open("&sort=score&sortKey=toxicity&sortIn=".concat(sessions[2] as string));
    await page.getByRole("button", { name: "Heat map" }).click();
    expect(search(page).heat).toBe("true");
    // Lower is better for toxicity, and the most toxic examples come first.
    const row = page.getByRole("row").filter({ hasText: "How do I ask" }).first();
    const styles = row.locator("span[style*=color-mix]");
    await expect.poll(() => styles.last().getAttribute("style")).toMatch(/var\(--worse\) 3[0-2]%/);
    await expectAccessible(page);
    await page.evaluate("document.documentElement.dataset.theme = 'dark'");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Heat map" }).click();
    await page.locator("span[style*=color-mix]").first().waitFor({ state: "detached" });
  });

  it("shows what to do without experiments, and the server's error message for unknown ones", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}/compare`);
    await page.getByText("Select experiments to compare").waitFor();
    await page.getByRole("checkbox", { name: "small v3" }).click();
    await page.getByText("n 240").first().waitFor();
    const nowhere = await web.open(`/experiments/datasets/${randomUUID()}/compare?experiments=${sessions[0]}`, {
      refused: [404],
    });
    await nowhere.getByRole("alert").getByText("not found").waitFor();
  });

  it("is accessible on wide and narrow screens, in light and dark themes", async () => {
    await takePictures(web, "compare", address(), ready);
    await takePictures(web, "compare-row", address(), async (page) => {
      await ready(page);
      await page.getByText(/^2\. How do I ask/).click();
      await page.getByRole("dialog").getByText("2 of 240").waitFor();
      await page.getByRole("dialog").locator("ins").first().waitFor();
    });
  }, 120_000);
});

/** Number of elements that the user can scroll from top to bottom. */
const COUNT_SCROLLED = (main: { querySelectorAll(selector: string): Iterable<unknown> }): number =>
  [...main.querySelectorAll("*")].filter((each) => {
    const { scrollHeight, clientHeight } = each as { scrollHeight: number; clientHeight: number };
    const { overflowY } = (
      globalThis as unknown as { getComputedStyle(of: unknown): { overflowY: string } }
    ).getComputedStyle(each);
    return scrollHeight > clientHeight && ["auto", "scroll"].includes(overflowY);
  }).length;
