import type { Browser, Page } from "playwright-core";
import { openPage, startBrowser, until } from "../browser.ts";
import { quantile } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import { serverOf } from "../target.ts";
import { upload } from "./experiments.ts";
import { bodyOf, type Uploaded } from "./upload-body.ts";

const EXPERIMENTS = 10;
/** Repetitions; each figure is their median. */
const TIMES = 5;
/** Duration, and distance per frame: 100 rows per second. */
const SCROLL_MS = 3_000;
const SCROLL_PX = 93;

const itself = { against: "itself" } as const;

/** The compare page with ten experiments of 10,000 rows, in a Chromium that shares the cores of this machine. */
export const webCompare: Measurement = {
  name: "web-compare",
  without: ["floor", "peer"],
  figures: [
    {
      key: "first_rows_ms",
      label: "compare page, 10 × 10,000: from navigation to the first rows, nothing cached, ms",
      goal: { ...itself, max: 1_000 },
    },
    { key: "scroll_fps", label: "... frames/s while it scrolls 100 rows/s", goal: { ...itself, min: 50 } },
    {
      key: "filter_ms",
      label: "... from a click to the examples that got worse, ms",
      goal: { ...itself, max: 200 },
    },
    { key: "sort_ms", label: "... from a click to the other order, ms", goal: { ...itself, max: 200 } },
    { key: "search_ms", label: "... from a word to the examples with it, in 260 MB of texts, ms" },
  ],
  async measure(start, { experiment_rows }) {
    await using target = await start();
    const server = serverOf(target);
    const uploads: Uploaded[] = [];
    while (uploads.length < EXPERIMENTS) uploads.push(await upload(server, bodyOf(experiment_rows, uploads.length)));
    const browser = await startBrowser();
    try {
      return await measurePage(browser, `http://127.0.0.1:${server.port}`, uploads);
    } finally {
      await browser.close();
    }
  },
};

async function measurePage(browser: Browser, url: string, uploads: readonly Uploaded[]): Promise<Values> {
  const [first, second] = uploads as [Uploaded, Uploaded];
  const experiments = uploads.map(({ experiment }) => experiment).join(",");
  const address = `${url}/app/experiments/datasets/${first.dataset}/compare?experiments=${experiments}`;
  const sorted = `${address}&sort=score&sortKey=similarity&sortIn=${second.experiment}&delta=true`;
  // The first visit computes the intervals, which are cached.
  const page = await open(browser, sorted);
  await page
    .getByText(/^(p |n\.s\.)/)
    .first()
    .waitFor({ timeout: 180_000 });
  const opened: number[] = [];
  for (let n = 0; n < TIMES; n++) {
    const visited = await open(browser, address);
    opened.push((await visited.evaluate("performance.now()")) as number);
    await visited.context().close();
  }
  const fps = await repeat(() => page.evaluate(SCROLL));
  await page.getByRole("button", { name: /similarity.* first$/ }).click();
  const sort = await repeat(() => page.evaluate(changeAfterClick('[role="radio"][aria-checked="false"]', ROW)));
  await page.keyboard.press("Escape");
  const filter = await repeat(() => page.evaluate(changeAfterClick('td:nth-of-type(2) button[title*="worse"]', TOTAL)));
  return {
    first_rows_ms: quantile(opened, 0.5),
    scroll_fps: quantile(fps, 0.5),
    filter_ms: quantile(filter, 0.5),
    sort_ms: quantile(sort, 0.5),
    search_ms: await search(page),
  };
}

const open = (browser: Browser, address: string) => openPage(browser, address, `${ROW}.includes("weather")`);

async function repeat(measure: () => Promise<unknown>): Promise<number[]> {
  const values: number[] = [];
  for (let n = 0; n < TIMES; n++) values.push((await measure()) as number);
  return values;
}

const ROW = `(document.querySelector('[role="rowgroup"] [role="row"]')?.textContent ?? "")`;
const TOTAL = `(document.querySelector('[role="status"]')?.textContent ?? "")`;

const SCROLL = `new Promise((done) => {
  const table = document.querySelector('[role="table"]').parentElement;
  table.scrollTop = 0;
  const started_at = performance.now();
  let frames = 0;
  requestAnimationFrame(function next() {
    table.scrollTop += ${SCROLL_PX};
    frames++;
    const took = performance.now() - started_at;
    if (took < ${SCROLL_MS}) requestAnimationFrame(next);
    else { table.scrollTop = 0; done(frames / took * 1000); }
  });
})`;

/** Time from a click to the first frame with a changed text, in ms. */
const changeAfterClick = (selector: string, text: string) => `new Promise((done) => {
  const text = () => ${text};
  const before = text();
  const started_at = performance.now();
  document.querySelector('${selector}').click();
  requestAnimationFrame(function check() {
    if (text() === before) requestAnimationFrame(check);
    else done(performance.now() - started_at);
  });
})`;

/** Time from the last typed character to the result, in ms. */
async function search(page: Page): Promise<number> {
  const before = await page.evaluate(TOTAL);
  await page.getByRole("searchbox").fill("4711:");
  const started_at = performance.now();
  await page.evaluate(until(`${TOTAL} !== ${JSON.stringify(before)}`));
  return performance.now() - started_at;
}
