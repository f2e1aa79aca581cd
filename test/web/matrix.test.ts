import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { experimentOf, type Row } from "../experiments/experiment.ts";
import { describeInBrowser, expectAccessible, WebTest } from "./browser.ts";

const ROWS = 1_200;
const NAMES = [
  "small v3: first prompt",
  "small v4: handbook",
  "small v5: short answers",
  "large v1",
  "large v2: tools",
];
const KEYS = ["answer_relevancy", "coherence", "correctness", "faithfulness", "fluency", "harm", "similarity", "tone"];

/** From 0 to 1, the same for the same arguments. */
const chance = (a: number, b: number): number => {
  const x = Math.sin(a * 12.9898 + b * 78.233) * 43_758.5453;
  return x - Math.floor(x);
};

/** Every sixth example lacks a score in one of the keys, and every hundredth failed: the cells have all that they may have. */
const rowOf = (row: Row, index: number, experiment: number): Row => ({
  ...row,
  error: index % 100 === experiment ? "TimeoutError" : null,
  evaluation_scores: KEYS.filter((_, key) => index % 6 !== experiment || key % 2 === 0).map((key, at) => ({
    key,
    score: at % 3 === 0 ? chance(index, at + experiment) < 0.6 + experiment / 20 : chance(index, at + experiment),
  })),
});

describeInBrowser("the matrix of scores by experiments", () => {
  let web: WebTest;
  let dataset: string;
  const sessions: string[] = [];
  beforeAll(async () => {
    web = await WebTest.start();
    const ids = Array.from({ length: ROWS }, () => randomUUID());
    for (const [n, experiment_name] of NAMES.entries()) {
      const head = { dataset_name: "many keys", experiment_name };
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

  it.each([2, 3, 4, 5])("is on a screen of 1280 pixels as a whole, with eight keys and %i experiments", async (n) => {
    const compared = sessions.slice(0, n).join(",");
    const page = await web.open(`/experiments/datasets/${dataset}/compare?experiments=${compared}`);
    const matrix = page.getByRole("region", { name: "Scores by experiment" });
    await matrix
      .getByText(/^(p |n\.s\.)/)
      .first()
      .waitFor();
    await page.evaluate("document.fonts.ready");
    await expect.poll(() => matrix.getByRole("row").count()).toBe(KEYS.length + 3);
    const size = await matrix.evaluate((element) => ({
      missing_px: element.scrollWidth - element.clientWidth,
      below_px: element.scrollHeight - element.clientHeight,
    }));
    expect(size).toEqual({ missing_px: 0, below_px: 0 });
    await expectAccessible(page);
  });

  it("is summed up on the page of its dataset, which fits on a phone", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`, { narrow: true });
    await page.getByRole("figure", { name: KEYS[0] }).waitFor();
    const size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]";
    await expect.poll(() => page.evaluate(size)).toEqual([390, 844]);
    const list = await page.getByRole("region", { name: "Experiments", exact: true }).boundingBox();
    expect((list?.x ?? 0) + (list?.width ?? 0)).toBeLessThanOrEqual(390);
  });

  it("compares nothing if the newest experiment shares no score with the baseline, and says so", async () => {
    const ids = Array.from({ length: 4 }, () => randomUUID());
    const made = [];
    for (const [experiment_name, key] of [
      ["strict", "correctness"],
      ["lenient", "similarity"],
    ]) {
      const head = { dataset_name: "no score in common", experiment_name };
      const score = () => [{ key, score: 0.5 }];
      const body = experimentOf(ids.length, score, head, (index) => ids[index] as string);
      made.push((await web.service.request("POST", "/api/v1/datasets/upload-experiment", body)).body);
    }
    const [strict, lenient] = made;
    const page = await web.open(`/experiments/datasets/${strict.dataset.id}`);
    await page.getByRole("figure", { name: "similarity" }).getByText("0.5").first().waitFor();
    // Not the score of the experiment before.
    await page.getByRole("figure", { name: "correctness" }).getByText("–", { exact: true }).waitFor();
    const compared = `${strict.experiment.id},${lenient.experiment.id}`;
    const comparison = await web.open(`/experiments/datasets/${strict.dataset.id}/compare?experiments=${compared}`);
    await comparison.getByText("No example has a score in both the baseline and another experiment.").waitFor();
    const home = await web.open("/");
    await home.getByText("no scored example in common with strict").waitFor();
  });
});
