import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeInBrowser, WebTest } from "./browser.ts";

/** What is asked of somebody who sees the pages for the first time. */
interface Answer {
  experiment: string;
  key: string;
  question: string;
}

/** A run as the experiments' API lists it. */
interface Run {
  session_id: string;
  reference_example_id: string;
  inputs: { question: string };
  feedback_stats: Record<string, { avg: number | null }>;
}

interface Named {
  id: string;
  name: string;
}

const EXPECTED: Answer = {
  experiment: "sample v3: short answers",
  key: "similarity",
  question: "Please explain step by step how to delete my account.",
};

describeInBrowser("a user who relies only on the screen", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start();
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  it("finds what regressed in the sample: the experiment, the key and the worst example", async () => {
    const page = await web.open("");
    await page.getByRole("button", { name: "Load sample" }).click();
    await page.getByRole("heading", { name: "Compare" }).waitFor();

    const found = await theRegression(page);
    await showWhatGotWorse(page, found);
    // The table may still be in the order before.
    await expect.poll(async () => ({ ...found, question: await firstQuestion(page) })).toEqual(EXPECTED);

    // The detail of that row says the same, whole.
    await page.getByText(EXPECTED.question).click();
    const detail = page.getByRole("dialog").getByRole("region", { name: found.experiment });
    await detail.getByText("No.", { exact: true }).waitFor();
    await expect.poll(() => detail.innerText()).toMatch(/similarity\s*0\s[\s\S]*−1/);
  });

  it("reads what the data says", async () => {
    const sessions: Named[] = (await web.service.request("GET", "/api/v1/sessions")).body;
    const [baseline, ...others] = sessions.sort((a, b) => a.name.localeCompare(b.name)) as [Named, ...Named[]];
    const before = await scoresIn(baseline);
    const regressed: Answer[] = [];
    for (const session of others) {
      const after = await scoresIn(session);
      for (const key of ["correctness", "similarity"]) {
        const differences = [...after].flatMap(([id, { question, scores }]) => {
          const [from, to] = [before.get(id)?.scores[key], scores[key]];
          return typeof from === "number" && typeof to === "number" ? [{ question, by: to - from }] : [];
        });
        if (mean(differences.map(({ by }) => by)) >= 0) continue;
        const [worst, second] = differences.sort((a, b) => a.by - b.by);
        expect(worst?.by).toBeLessThan(second?.by as number);
        regressed.push({ experiment: session.name, key, question: worst?.question as string });
      }
    }
    expect(regressed).toEqual([EXPECTED]);
  });

  /** Scores by example, page by page. */
  async function scoresIn({ id }: Named) {
    const found = new Map<string, { question: string; scores: Record<string, number | null | undefined> }>();
    let cursor: string | undefined;
    do {
      const { body } = await web.service.request("POST", "/api/v1/runs/query", { session: [id], limit: 100, cursor });
      for (const { reference_example_id, inputs, feedback_stats } of body.runs as Run[]) {
        const scores = Object.entries(feedback_stats ?? {}).map(([key, { avg }]) => [key, avg] as const);
        found.set(reference_example_id, { question: inputs.question, scores: Object.fromEntries(scores) });
      }
      cursor = body.cursors?.next ?? undefined;
    } while (cursor);
    expect(found.size).toBe(200);
    return found;
  }
});

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The only cell of the matrix that says “worse”, and that this is no chance. */
async function theRegression(page: Page): Promise<Omit<Answer, "question">> {
  const matrix = page.getByRole("region", { name: "Scores by experiment" });
  await matrix.getByText(/^p </).first().waitFor();
  const [, ...heads] = await matrix.getByRole("columnheader").all();
  const names = await Promise.all(heads.map((head) => head.getByRole("button").first().innerText()));
  const found: Omit<Answer, "question">[] = [];
  for (const row of await matrix.getByRole("row").all()) {
    const cells = await row.getByRole("cell").all();
    for (const [index, cell] of cells.entries()) {
      const isWorse = /▼\s*worse\s*−[\d.]+\s*\[[^\]]+\][\s\S]*p [<\d]/.test(await cell.innerText());
      const key = (await row.getByRole("rowheader").innerText()).split("\n")[0] as string;
      if (isWorse) found.push({ experiment: names[index] as string, key });
    }
  }
  expect(found).toHaveLength(1);
  return found[0] as Omit<Answer, "question">;
}

/** A click on how many got worse shows these, the worst first. */
async function showWhatGotWorse(page: Page, { experiment, key }: Omit<Answer, "question">): Promise<void> {
  const matrix = page.getByRole("region", { name: "Scores by experiment" });
  await matrix.getByRole("button", { name: `worse for ${key} in ${experiment}` }).click();
  await page.getByRole("button", { name: "Worst first" }).waitFor();
}

/** What the first row of the table asks. */
async function firstQuestion(page: Page): Promise<string> {
  const table = page.getByRole("table", { name: "Examples" });
  const head = await table.getByRole("columnheader").allInnerTexts();
  const first = table.getByRole("rowgroup").last().getByRole("row").first();
  const input = first.getByRole("cell").nth(head.findIndex((text) => /input/i.test(text)));
  return (await input.innerText()).trim();
}
