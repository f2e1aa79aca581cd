import type { Browser, Page } from "playwright-core";
import { startBrowser } from "../browser.ts";
import { quantile } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import { serverOf } from "../target.ts";
import { upload } from "./experiments.ts";
import { bodyOf, type Uploaded } from "./upload-body.ts";

const EXPERIMENTS = 10;
/** Of each figure the median of so many is told. */
const TIMES = 5;
/** How long, and how far a frame: 100 rows a second. */
const SCROLL_MS = 3_000;
const SCROLL_PX = 93;

const itself = { against: "itself" } as const;

/** The compare page with ten experiments of 10,000 rows in a Chromium on this machine, which takes its share of the cores. */
export const webCompare: Measurement = {
  name: "web-compare",
  without: ["floor", "peer"],
  figures: [
    {
      key: "first_rows_ms",
      label: "compare page, 10 × 10,000: from navigation to the first rows, nothing cached, ms",
      goal: { ...itself, at_most: 1_000 },
    },
    { key: "scroll_fps", label: "... frames/s while it scrolls 100 rows/s", goal: { ...itself, at_least: 50 } },
    {
      key: "filter_ms",
      label: "... from a click to the examples that got worse, ms",
      goal: { ...itself, at_most: 200 },
    },
    { key: "sort_ms", label: "... from a click to the other order, ms", goal: { ...itself, at_most: 200 } },
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
  // Intervals are computed once and kept: the first visit waits for them.
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
  const fps = await several(() => page.evaluate(SCROLL));
  await page.getByRole("button", { name: /similarity.* first$/ }).click();
  const sort = await several(() => page.evaluate(changeAfterClick('[role="radio"][aria-checked="false"]', ROW)));
  await page.keyboard.press("Escape");
  const filter = await several(() =>
    page.evaluate(changeAfterClick('td:nth-of-type(2) button[title*="worse"]', TOTAL)),
  );
  return {
    first_rows_ms: quantile(opened, 0.5),
    scroll_fps: quantile(fps, 0.5),
    filter_ms: quantile(filter, 0.5),
    sort_ms: quantile(sort, 0.5),
    search_ms: await search(page),
  };
}

/** A page of a browser without a past, with its first rows drawn. */
async function open(browser: Browser, address: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(address, { waitUntil: "commit" });
  await page.evaluate(until(`${ROW}.includes("weather")`));
  return page;
}

async function several(take: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let n = 0; n < TIMES; n++) taken.push((await take()) as number);
  return taken;
}

const ROW = `(document.querySelector('[role="rowgroup"] [role="row"]')?.textContent ?? "")`;
const TOTAL = `(document.querySelector('[role="status"]')?.textContent ?? "")`;

/** Looks each frame. As text: the pages' policy allows nothing that the browser would have to compile within them. */
const until = (condition: string) => `new Promise((done) => {
  requestAnimationFrame(function look() {
    if (${condition}) done();
    else requestAnimationFrame(look);
  });
})`;

const SCROLL = `new Promise((done) => {
  const table = document.querySelector('[role="table"]').parentElement;
  table.scrollTop = 0;
  const began = performance.now();
  let frames = 0;
  requestAnimationFrame(function next() {
    table.scrollTop += ${SCROLL_PX};
    frames++;
    const took = performance.now() - began;
    if (took < ${SCROLL_MS}) requestAnimationFrame(next);
    else { table.scrollTop = 0; done(frames / took * 1000); }
  });
})`;

/** How long it takes until a text has changed after a click, to the frame. */
const changeAfterClick = (selector: string, text: string) => `new Promise((done) => {
  const text = () => ${text};
  const before = text();
  const began = performance.now();
  document.querySelector('${selector}').click();
  requestAnimationFrame(function look() {
    if (text() === before) requestAnimationFrame(look);
    else done(performance.now() - began);
  });
})`;

/** Typing it counts from its last letter. */
async function search(page: Page): Promise<number> {
  const before = await page.evaluate(TOTAL);
  await page.getByRole("searchbox").fill("4711:");
  const began = performance.now();
  await page.evaluate(until(`${TOTAL} !== ${JSON.stringify(before)}`));
  return performance.now() - began;
}
