import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { SAMPLE_NAMES, sampleUploads } from "../../web/src/pages/experiments/sample/sample.ts";
import { CLOSINGS, OPENINGS, TOPICS } from "../../web/src/pages/experiments/sample/sample-topics.ts";
import { delta, percent, percentagePoints } from "../../web/src/ui/format.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { until } from "../support/until.ts";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

const [V1, V2, V3] = SAMPLE_NAMES as [string, string, string];
const SAMPLE = sampleUploads(new Date());
const scoreOf = (variant: number, row: number, key: string) =>
  SAMPLE[variant]?.results[row]?.evaluation_scores.find((score) => score.key === key)?.score;
const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const rows = SAMPLE[0]?.results.map((_, row) => row) ?? [];
/** The mean of a score over the rows that have it. */
const meanScore = (variant: number, key: string) =>
  meanOf(rows.flatMap((row) => scoreOf(variant, row, key) ?? [])).toFixed(3);
const errorShare = (variant: number) => rows.filter((row) => SAMPLE[variant]?.results[row]?.error).length / rows.length;
/** The mean difference over the rows that both variants have a score for, with its sign as the page writes it. */
const difference = (variant: number, baseline: number, key: string, digits: number) => {
  const mean = meanOf(
    rows.flatMap((row) => {
      const [one, other] = [scoreOf(variant, row, key), scoreOf(baseline, row, key)];
      return one === undefined || other === undefined ? [] : one - other;
    }),
  );
  return `${mean < 0 ? "−" : "+"}${Number(Math.abs(mean).toFixed(digits))}`;
};

it("the answers of the sample are complete sentences about their topics", () => {
  const sentencesOf = (text: string) => text.split(/(?<=[.!?]) /);
  const answers = TOPICS.flatMap(({ answer, short, fact, wrong }) =>
    [answer, short].flatMap((text) => [text, text.replace(fact, wrong)]),
  );
  const known = new Set([...answers.flatMap(sentencesOf), ...OPENINGS, ...CLOSINGS, "No."]);
  const said = SAMPLE.flatMap(({ results }) => results.flatMap(({ actual_outputs }) => actual_outputs?.answer ?? []));
  expect(said.length).toBeGreaterThan(500);
  expect(said.flatMap(sentencesOf).filter((sentence) => !known.has(sentence))).toEqual([]);
});

const GRAPHS = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const graphOf = (fields, node) => {
  const state = Annotation.Root(Object.fromEntries(fields.map((field) => [field, Annotation])));
  return new StateGraph(state).addNode("node", node).addEdge("__start__", "node").addEdge("node", "__end__").compile();
};
export const answers = graphOf(["question", "answer"], ({ question }) => {
  if (question === "broken?") throw new Error("no answer");
  return { answer: question === "wrong?" ? "no" : "yes" };
});
export const judge = graphOf(["inputs", "outputs", "expected", "score", "comment"], ({ inputs, outputs, expected }) => ({
  score: outputs.answer === expected.answer ? 1 : 0.25,
  comment: "about " + inputs.question,
}));
`;

interface TraceRun {
  id: string;
  parent_run_id: string | null;
}

describeInBrowser("experiments that the page runs", () => {
  let project: TestProject;
  let web: WebTest;
  let dataset: string;
  const request = async (method: string, path: string, body?: unknown) =>
    (await web.service.request(method, `/api/v1${path}`, body)).body;
  beforeAll(async () => {
    const graphs = { answers: "./graphs.mjs:answers", judge: "./graphs.mjs:judge" };
    project = createProject({ "graphs.mjs": GRAPHS, "langgraph.json": JSON.stringify({ graphs }) });
    web = await WebTest.start({ config: project.config, env: { THREADMILL_TRACING: "on" } });
    dataset = (await request("POST", "/datasets", { name: "By the page" })).id;
    for (const question of ["one?", "two?", "three?", "four?", "wrong?", "broken?"]) {
      const outputs = { question, answer: "yes" };
      await request("POST", "/examples", { dataset_id: dataset, inputs: { question }, outputs });
    }
  });
  afterEach(() => web.closePages());
  afterAll(async () => {
    await web.stop();
    project.drop();
  });

  const run = async (page: Page, name: string) => {
    await page.getByRole("button", { name: "Run experiment" }).click();
    const form = page.getByRole("dialog", { name: "Run experiment" });
    await form.getByLabel("Assistant", { exact: true }).click();
    await page.getByRole("option", { name: "answers" }).click();
    await form.getByLabel("Name").fill(name);
    await form.getByLabel("Exact match").check();
    await form.getByLabel("Assistant as evaluator").click();
    await page.getByRole("option", { name: "judge" }).click();
    await expectAccessible(page);
    await form.getByRole("button", { name: "Run experiment" }).click();
  };
  const sessionOf = async (name: string) => {
    const sessions = await request("GET", `/sessions?reference_dataset=${dataset}&include_stats=true`);
    return sessions.find((session: { name: string }) => session.name === name);
  };

  it("evaluate each example, and end in the comparison", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`, { plain: true });
    await run(page, "first try");
    await page.getByText("first try has ended. 1 of 6 runs failed.").waitFor();
    const first = await sessionOf("first try");
    expect(first).toMatchObject({ run_count: 6, end_time: expect.any(String), error_rate: 1 / 6 });
    expect(first.extra.metadata).toMatchObject({ assistant: "answers", dataset: "By the page" });
    // The failed run has no scores.
    expect(first.feedback_stats).toMatchObject({
      exact_match: { n: 5, avg: 4 / 5 },
      json_match: { n: 5, avg: 4.5 / 5 },
      judge: { n: 5, avg: 4.25 / 5 },
    });
    await until("each agent run is below the run of its row", async () => {
      const { runs } = await request("POST", "/runs/query", { session: [first.id], limit: 100 });
      const roots = new Set(runs.filter((each: TraceRun) => each.parent_run_id === null).map(({ id }: TraceRun) => id));
      const below = runs.filter(({ parent_run_id }: TraceRun) => parent_run_id && roots.has(parent_run_id));
      return roots.size === 6 && below.length === 6;
    });
    await run(page, "second try");
    const second = page.getByRole("region", { name: "second try" });
    await second.getByRole("link", { name: "Compare with the baseline" }).waitFor();
    // The one before is in the list of experiments.
    expect(await page.getByRole("region", { name: "first try" }).count()).toBe(0);
    await second.getByRole("link", { name: "Compare with the baseline" }).click();
    await page.getByRole("button", { name: "second try", exact: true }).waitFor();
    await page.getByText("6 examples").waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get("experiments")).toMatch(new RegExp(`^${first.id},`));
  });

  it("say whose assistants these are, and that an assistant does not read the input of the examples", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`);
    await page.getByRole("button", { name: "Run experiment" }).click();
    const form = page.getByRole("dialog", { name: "Run experiment" });
    await form.getByText("Of this server.").waitFor();
    await form.getByLabel("Assistant", { exact: true }).click();
    await page.getByRole("option", { name: "judge" }).click();
    await form.getByText(/^The first example has the input question, but the assistant reads .*outputs/).waitFor();
    await expectAccessible(page);
    await form.getByLabel("Assistant", { exact: true }).click();
    await page.getByRole("option", { name: "answers" }).click();
    await form.getByText("The first example has").waitFor({ state: "detached" });
  });

  it("stop at a request that fails, and continue without storing a row twice", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`, { loses: true });
    let requests = 0;
    await page.route("**/api/v1/feedback", (route) =>
      ++requests === 4 ? route.abort("internetdisconnected") : route.continue(),
    );
    // The strip of the dataset reads the differences of what is stored so far.
    const partly = page.waitForResponse((response) => response.url().endsWith("/compare"));
    await run(page, "interrupted");
    const section = page.getByRole("region", { name: "interrupted" });
    await section
      .getByRole("alert")
      .getByText(/stopped after \d of 6 examples/)
      .waitFor();
    await partly;
    await section.getByRole("button", { name: "Continue" }).click();
    await page.getByText("interrupted has ended.").waitFor();
    expect(await sessionOf("interrupted")).toMatchObject({
      run_count: 6,
      feedback_stats: { exact_match: { n: 5 }, json_match: { n: 5 }, judge: { n: 5 } },
    });
    await section.getByRole("link", { name: "Compare with the baseline" }).click();
    await page.getByText("5 same").first().waitFor();
    await page.goBack();
    await section.getByRole("button", { name: "Close" }).click();
    await section.waitFor({ state: "detached" });
  });

  it("send a result again that the server has no room for", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`, { refused: [503] });
    let refused = 0;
    await page.route("**/api/v1/{feedback,runs/batch}", (route) =>
      refused < 2 &&
      route
        .request()
        .url()
        .endsWith(["batch", "feedback"][refused] as string)
        ? route.fulfill({ status: 503, json: { detail: `Refused ${++refused}` } })
        : route.continue(),
    );
    await run(page, "refused");
    await page.getByText("refused has ended. 1 of 6 runs failed.").waitFor();
    expect(refused).toBe(2);
    expect(await sessionOf("refused")).toMatchObject({ run_count: 6, feedback_stats: { judge: { n: 5 } } });
  });

  it("mark results for an earlier version of an example in the comparison", async () => {
    const { id } = await request("POST", "/datasets", { name: "Edited" });
    const example = { inputs: { question: "one?" }, outputs: { answer: "no" } };
    const { id: example_id } = await request("POST", "/examples", { dataset_id: id, ...example });
    const page = await web.open(`/experiments/datasets/${id}`);
    await run(page, "with the old answer");
    await page.getByText("with the old answer has ended.").waitFor();
    await request("PATCH", `/examples/${example_id}`, { outputs: { answer: "yes" } });
    await run(page, "with the new answer");
    await page.getByRole("link", { name: "Compare with the baseline" }).click();
    const row = page.getByRole("row", { name: /one\?/ });
    await row.getByText("Earlier version").waitFor();
    await expect.poll(() => page.getByText("Earlier version").count()).toBe(1);
    await row.click();
    const details = page.getByRole("dialog").getByRole("region", { name: "with the old answer" });
    await details.getByText("Evaluated with an earlier version of the example").waitFor();
    await expect.poll(() => page.getByText("Evaluated with an earlier version").count()).toBe(1);
    await expectAccessible(page);
  });

  it("evaluate with code that has no access to the network or the page, and that ends in time", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`, { blocked: true });
    const name = "with code";
    await page.getByRole("button", { name: "Run experiment" }).click();
    const form = page.getByRole("dialog", { name: "Run experiment" });
    await form.getByLabel("Assistant", { exact: true }).click();
    await page.getByRole("option", { name: "answers" }).click();
    await form.getByLabel("Name", { exact: true }).fill(name);
    await form.getByLabel("JSON match").uncheck();
    await form.getByLabel("Code").check();
    await form.getByLabel("Name of the score").fill("checked");
    await form.getByLabel("Function body").fill("return {");
    await expectAccessible(page);
    await form.getByRole("button", { name: "Run experiment" }).click();
    await form
      .getByRole("alert")
      .getByText(/The code of the evaluator is invalid \(SyntaxError: /)
      .waitFor();
    const code = `
      switch (run.inputs.question) {
        case "one?": return { score: example.outputs.answer === run.outputs.answer, comment: "as expected" };
        case "two?": throw new TypeError("no score");
        case "three?": for (;;);
        case "four?": await fetch(${JSON.stringify(`${web.url}/app/api/session`)}, { mode: "no-cors" }); return { score: 0.5 };
        default: return { score: typeof localStorage + typeof document };
      }`;
    await form.getByLabel("Function body").fill(code);
    await form.getByRole("button", { name: "Run experiment" }).click();
    await page.getByText(`${name} has ended. 1 of 6 runs and 4 evaluations failed.`).waitFor();
    const { id, feedback_stats } = await sessionOf(name);
    expect(feedback_stats.checked).toMatchObject({ n: 5, errors: 4, avg: 1 });
    const feedback = await request("GET", `/feedback?session=${id}`);
    const texts = feedback.map(({ score, comment }: { score: number | null; comment: string }) => [score, comment]);
    expect(texts.sort(([, a]: string[], [, b]: string[]) => ((a as string) < (b as string) ? -1 : 1))).toEqual([
      [null, "The evaluator returned neither a score (a number or a boolean) nor a value."],
      [null, "TimeoutError: The function took longer than 5 s."],
      [null, expect.stringMatching(/^TypeError: Failed to fetch/)],
      [null, "TypeError: no score"],
      [1, "as expected"],
    ]);
    await page.getByRole("region", { name }).getByRole("link", { name: "Open", exact: true }).click();
    await page.getByRole("row", { name: /two\?/ }).click();
    await page.getByRole("dialog").getByText("TypeError: no score").waitFor();
    await page.getByRole("dialog").getByText("failed", { exact: true }).waitFor();
    await expectAccessible(page);
    await expect.poll(() => page.getByRole("table").getByText("failed", { exact: true }).count()).toBe(4);
    // The form offers the same again.
    await page.goto(`${web.url}/app/experiments/datasets/${dataset}`);
    await page.getByRole("button", { name: "Run experiment" }).click();
    await form.getByLabel("Assistant", { exact: true }).getByText("answers").waitFor();
    await expect.poll(() => form.getByLabel("Code").isChecked()).toBe(true);
    expect(await form.getByLabel("JSON match").isChecked()).toBe(false);
    await expect.poll(() => form.getByLabel("Function body").inputValue()).toBe(code);
    await takePictures(web, "evaluated", `/experiments/sessions/${id}`, async (shown) => {
      await shown.getByRole("row", { name: /two\?/ }).click();
      await shown.getByRole("dialog").getByText("TypeError: no score").waitFor();
    });
    await takePictures(web, "run-experiment", `/experiments/datasets/${dataset}`, async (shown) => {
      await shown.getByRole("button", { name: "Run experiment" }).click();
      await shown.getByRole("dialog").getByLabel("Code").check();
      await shown.getByLabel("Function body").scrollIntoViewIfNeeded();
    });
  });

  it("keep a thread for each example, and are deleted with these", async () => {
    const countOf = async (experiment: string) =>
      (await web.service.request("POST", "/threads/count", { metadata: { experiment } })).body;
    const page = await web.open(`/experiments/datasets/${dataset}`);
    for (const name of ["kept", "other"]) {
      await run(page, name);
      await page.getByText(`${name} has ended.`).waitFor();
      await expect.poll(() => countOf(name)).toBe(6);
    }
    const threads = await web.open("/threads");
    await threads.getByText("No threads yet").waitFor();
    await threads.getByLabel("Threads of experiments").check();
    await threads
      .getByRole("row", { name: /experiment=kept/ })
      .nth(5)
      .waitFor();
    await expectAccessible(threads);
    await page.getByRole("button", { name: "Actions for kept" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete experiment “kept”?" });
    await dialog.getByLabel("Also delete the 6 threads that were kept for examples").check();
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("Experiment deleted").waitFor();
    expect([await countOf("kept"), await countOf("other"), await sessionOf("kept")]).toEqual([0, 6, undefined]);
  });

  it("say that a name is taken, and keep what was entered", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`, { refused: [409] });
    await request("POST", "/sessions", { name: "taken", reference_dataset_id: dataset });
    await run(page, "taken");
    const form = page.getByRole("dialog", { name: "Run experiment" });
    await form
      .getByRole("alert")
      .getByText(/already exists/)
      .waitFor();
    await expect.poll(() => form.getByLabel("Name").inputValue()).toBe("taken");
  });
});

describeInBrowser("the pages of experiments", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start();
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const get = async (path: string) => (await web.service.request("GET", `/api/v1${path}`)).body;
  const upload = async (body: unknown) =>
    (await web.service.request("POST", "/api/v1/datasets/upload-experiment", body)).body;
  /** A dataset of its own for a test, with the sample's experiments. */
  const withSample = async (name: string) => {
    const sessions: string[] = [];
    let dataset = "";
    for (const body of SAMPLE) {
      const made = await upload({ ...body, dataset_name: name, experiment_name: `${name}: ${body.experiment_name}` });
      sessions.push(made.experiment.id);
      dataset = made.dataset.id;
    }
    return { dataset, at: `/experiments/datasets/${dataset}`, sessions: sessions as [string, string, string] };
  };
  const rowOf = (page: Page, name: string | RegExp) => page.getByRole("row", { name });

  it("begin with what is running, and load the sample by one click, twice the same", async () => {
    const page = await web.open("");
    await page.getByRole("combobox", { name: "Assistant" }).click();
    await page.getByRole("option", { name: "research" }).click();
    await page.getByText("Run research from a terminal").click();
    // Its schema is read from types by TypeScript, for which a busy machine has up to 30 s.
    const body = '{"assistant_id":"research","input":{"question":"Hello!"}}';
    await page.getByText(body).waitFor({ timeout: 60_000 });
    await page.getByLabel("question").waitFor();
    await page.goto(`${web.url}/app/experiments`);
    await page.getByText("No experiments yet").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Load sample" }).click();
    await page.waitForURL(/\/compare\?experiments=/);
    const [dataset] = await get("/datasets");
    expect([dataset.example_count, dataset.session_count]).toEqual([200, 3]);
    const query = new URL(page.url()).searchParams;
    const compared = await Promise.all((query.get("experiments") ?? "").split(",").map((id) => get(`/sessions/${id}`)));
    expect(compared.map(({ name }) => name)).toEqual([V1, V2, V3]);
    expect(query.get("baseline")).toBe(compared[0].id);
    expect(dataset.baseline_experiment_id).toBe(compared[0].id);
    // A difference of errors has no test, so it has no colour of better or worse.
    const errors = page.getByRole("row", { name: /^errors/ }).getByTitle("Not tested for significance");
    await expect.poll(() => errors.allInnerTexts()).toHaveLength(2);
    expect((await errors.allInnerTexts()).join()).toMatch(/▲\s*better\s*−4,▼\s*worse\s*\+1/);
    expect(await errors.locator(".text-worse, .text-better").count()).toBe(0);
    // The experiments of the matrix are above those of the table.
    const lefts = (region: string) =>
      page
        .getByRole("region", { name: region })
        .getByRole("columnheader")
        .evaluateAll((heads) => heads.slice(-3).map((head) => Math.round(head.getBoundingClientRect().x)));
    for (const width of [1280, 1440, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      await expect
        .poll(async () => [await lefts("Scores by experiment"), await lefts("Examples")])
        .toSatisfy(([above, below]) => above.length === 3 && String(above) === String(below));
    }

    await page.goto(`${web.url}/app`);
    await page.getByRole("link", { name: dataset.name, exact: true }).waitFor();
    const comparisons = page.getByRole("region", { name: "Latest comparisons" });
    await comparisons.getByText(/worse on similarity: −0\.\d+, p <0\.001/).waitFor();
    await page.getByRole("button", { name: "Load sample" }).click();
    await page.waitForURL(/\/compare\?experiments=/);
    expect(await get("/datasets")).toHaveLength(1);
    expect(await get("/sessions")).toHaveLength(3);
  });

  it("find a dataset, sort its experiments, and compare those that are chosen", async () => {
    const { at, sessions } = await withSample("Chosen");
    const page = await web.open("/experiments");
    await page.getByLabel("Search datasets by name").fill("chos");
    await page.getByText("1 dataset", { exact: true }).waitFor();
    await expect.poll(() => page.url()).toContain("q=chos");
    await page.getByRole("link", { name: "Chosen" }).click();
    await page
      .getByRole("figure", { name: "similarity" })
      .getByText(meanScore(2, "similarity"), { exact: true })
      .waitFor();

    await page.getByRole("columnheader", { name: "similarity" }).getByRole("button").click();
    await page.getByRole("columnheader", { name: "similarity" }).and(page.locator("[aria-sort=descending]")).waitFor();
    const names = await page.getByRole("row").getByRole("link").allInnerTexts();
    expect(names).toEqual([V2, V1, V3].map((name) => `Chosen: ${name}`));
    await expect
      .poll(() => rowOf(page, /v1/).innerText())
      .toMatch(new RegExp(`#1\\s+${meanScore(0, "correctness")}\\s+${meanScore(0, "similarity")}\\s`));

    await page.getByLabel(`Select Chosen: ${V3}`).check();
    await page.getByLabel(`Select Chosen: ${V1}`).check();
    const address = new URL(page.url());
    expect([address.pathname, address.searchParams.get("chosen")]).toEqual([
      `/app${at}`,
      `${sessions[2]},${sessions[0]}`,
    ]);
    await page.reload();
    await page.getByRole("link", { name: "Compare 2" }).click();
    await page.waitForURL(/\/compare\?/);
    const query = new URL(page.url()).searchParams;
    expect([query.get("experiments"), query.get("baseline")]).toEqual([`${sessions[0]},${sessions[2]}`, sessions[0]]);
  });

  it("show the difference of the newest from the baseline, in the numbers of their comparison", async () => {
    const { dataset, at, sessions } = await withSample("Trends");
    const page = await web.open(at);
    const trends = page.getByRole("region", { name: "Trends across experiments" });
    const textOf = async (name: string) =>
      (await trends.getByRole("figure", { name }).innerText()).replace(/\s+/g, " ");
    await trends.getByText("(previous)").waitFor();
    await web.service.request("PATCH", `/api/v1/datasets/${dataset}`, { baseline_experiment_id: sessions[0] });
    await page.reload();
    await trends.getByText(`vs. Trends: ${V1}`).waitFor();
    await trends.getByText("(baseline)").waitFor();
    const [similarity, correctness] = [difference(2, 0, "similarity", 3), difference(2, 0, "correctness", 2)];
    await trends.getByText(similarity).waitFor();
    await expect
      .poll(() => textOf("similarity"))
      .toMatch(new RegExp(`^similarity ${meanScore(2, "similarity")} ▼ ?worse ?${similarity}`));
    await expect.poll(() => textOf("correctness")).toContain(correctness);
    const errors = [2, 0].map((variant) => errorShare(variant)) as [number, number];
    const change = delta(errors[0] - errors[1], percentagePoints);
    const colours = await Promise.all(
      [similarity, correctness, change].map((by) => trends.getByText(by).evaluate((element) => element.className)),
    );
    // Errors are not tested for significance.
    const [worse, grey] = ["text-worse", "text-text-3"].map((name) => expect.stringContaining(name));
    expect(colours).toEqual([worse, grey, grey]);
    await expect.poll(() => textOf("errors")).toContain(`errors ${percent(errors[0])} ${change}`);
    await expectAccessible(page);

    await page.getByText("Select two or more experiments to compare").waitFor();
    await page.getByLabel("Select all").check();
    await page.getByRole("link", { name: "Compare 3" }).waitFor();
    await page.getByLabel("Select all").uncheck();
    await page.getByText("Select two or more experiments to compare").waitFor();
  });

  it("choose and name the baseline with the keyboard only", async () => {
    const { dataset, at, sessions } = await withSample("Keys");
    const page = await web.open(at);
    await rowOf(page, /v3/).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("b");
    await rowOf(page, /v2.*baseline/).waitFor();
    expect((await get(`/datasets/${dataset}`)).baseline_experiment_id).toBe(sessions[1]);
    await page.keyboard.press("k");
    await page.keyboard.press("x");
    const link = page.getByRole("link", { name: "Compare with baseline" });
    await expect
      .poll(() => link.getAttribute("href"))
      .toContain(`experiments=${encodeURIComponent(`${sessions[1]},${sessions[2]}`)}&baseline=${sessions[1]}`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: V3 }).waitFor();
  });

  it("rename and delete experiments and datasets, and say when a name is taken", async () => {
    const { dataset, at, sessions } = await withSample("Tidy");
    await withSample("Taken");
    const page = await web.open(at, { refused: [409] });
    await page.getByRole("button", { name: `Actions for Tidy: ${V1}` }).click();
    await page.getByRole("menuitem", { name: "Rename" }).click();
    const name = page.getByLabel("Name", { exact: true });
    await name.fill(`Taken: ${V1}`);
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByText("Session already exists.").waitFor();
    await expectAccessible(page);
    await name.fill("the first");
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByRole("link", { name: "the first" }).waitFor();
    expect((await get(`/sessions/${sessions[0]}`)).name).toBe("the first");

    await page.getByRole("button", { name: "Actions for the first" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByText("The experiment's runs (200) and their feedback are deleted.").waitFor();
    // What is behind the dialog has no roles as long as that is open, so it says nothing about the end of the deletion.
    const deleted = page.waitForResponse((response) => response.request().method() === "DELETE");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await deleted;
    await page.getByRole("link", { name: "the first" }).waitFor({ state: "detached" });
    expect((await get(`/datasets/${dataset}`)).session_count).toBe(2);

    await page.getByRole("button", { name: "Dataset actions" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByText("The dataset is deleted with its examples (200) and its experiments (2)").waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("link", { name: "Taken" }).waitFor();
    expect(await page.getByRole("link", { name: "Tidy" }).count()).toBe(0);
    expect((await web.service.request("GET", `/api/v1/datasets/${dataset}`)).status).toBe(404);
  });

  it("upload files, and show each error with its position", async () => {
    const body = sampleUploads(new Date())[0] as ReturnType<typeof sampleUploads>[number];
    const named = { ...body, dataset_name: "Uploaded", experiment_name: "from a file" };
    const wrong = {
      ...named,
      results: named.results.map((row, at) => {
        if (at === 5) return { ...row, evaluation_scores: [{ key: "tone", score: "high" }] };
        return at === 3 ? { ...row, start_time: "soon" } : row;
      }),
    };
    const fileOf = (name: string, content: unknown) => ({
      name,
      mimeType: "application/json",
      buffer: Buffer.from(typeof content === "string" ? content : JSON.stringify(content)),
    });
    const page = await web.open("/experiments", { refused: [409, 422] });
    await page.getByRole("button", { name: "Upload" }).click();
    const input = page.getByLabel("Files to upload");
    await input.setInputFiles([fileOf("wrong.json", wrong), fileOf("right.json", named)]);
    await page.getByText("results[3].start_time").waitFor();
    await page.getByText('input is too short (got "soon")').waitFor();
    await page.getByText('results[5].evaluation_scores[0].score must be a number or a boolean (got "high")').waitFor();
    await page.getByRole("link", { name: "Open" }).waitFor();
    await input.setInputFiles(fileOf("again.json", named));
    await page.getByText("Change experiment_name in the file").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Open" }).click();
    await page.getByRole("heading", { name: "from a file" }).waitFor();
    expect((await get("/sessions?name_contains=from a file")).length).toBe(1);
  });

  /** As somebody drags files out of a folder: the text of each by its name. */
  const drop = (page: Page, files: Readonly<Record<string, string>>) =>
    page.evaluate(`{
      const data = new DataTransfer();
      for (const [name, text] of Object.entries(${JSON.stringify(files)})) data.items.add(new File([text], name));
      window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }`);

  it("take files that are dropped on the page, and store nothing of one that is cancelled while it is sent", async () => {
    const page = await web.open("/experiments");
    await page.getByRole("table", { name: "Datasets" }).waitFor();
    // 4 MB at 200 KB/s would take 20 s.
    const network = await page.context().newCDPSession(page);
    const throttle = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 200_000 };
    await network.send("Network.emulateNetworkConditions", throttle);
    const body = { ...sampleUploads(new Date())[0], dataset_name: "Dropped" };
    const large = { ...body, experiment_name: "large", experiment_metadata: { filler: "x".repeat(4e6) } };
    const small = { ...body, experiment_name: "small", results: body.results?.slice(0, 3) };
    await drop(page, { "large.json": JSON.stringify(large), "small.json": JSON.stringify(small) });
    const progress = page.getByRole("progressbar", { name: "large.json" });
    await page.getByText(/^[1-9].* of 4\.\d+ MB$/).waitFor();
    await page.getByText("small.json · Waiting").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    await progress.waitFor({ state: "detached" });
    // The next one is sent after it.
    await page.getByRole("link", { name: "Open" }).waitFor();
    expect((await get("/sessions?name=small")).length).toBe(1);
    expect(await get("/sessions?name=large")).toEqual([]);
    expect((await get("/datasets?name=Dropped"))[0]).toMatchObject({ example_count: 3, session_count: 1 });
  });

  it("take tables: CSV and JSONL files, whose columns are mapped and whose rows are shown before they are sent", async () => {
    const page = await web.open("/experiments", { refused: [409] });
    await page.getByRole("button", { name: "Upload" }).waitFor();
    const csv = [
      "id,question,expected_answer,answer,correct,tone,latency",
      '7,"Where, please?",Paris,"Paris, I think",1,dry,0.5',
      "8,How many?,12,11,wrong,warm,fast",
    ];
    await drop(page, { "first try.csv": csv.join("\n") });
    const form = page.getByRole("dialog").locator("form");
    const use = (column: string) => form.getByRole("combobox", { name: `Use of ${column}` });
    const choose = async (column: string, option: string) => {
      await use(column).click();
      await page.getByRole("option", { name: option, exact: true }).click();
    };
    await use("id").waitFor();
    const names = ["id", "question", "expected_answer", "answer", "tone"];
    await expect
      .poll(() => Promise.all(names.map((name) => use(name).innerText())))
      .toEqual(["Metadata of the run", "Input", "Expected output", "Output", "Metadata of the run"]);
    await choose("correct", "Score (number)");
    await choose("tone", "Score (label)");
    const problems = form.getByRole("alert");
    await problems.getByText('line 3, correct: must be a number, not "wrong".').waitFor();
    await problems.getByText('line 3, latency: must be a number, not "fast".').waitFor({ state: "detached" });
    await expectAccessible(page);
    await expect.poll(() => form.getByRole("button", { name: "Upload 2 rows" }).isDisabled()).toBe(true);
    await choose("correct", "Not used");
    await problems.getByText('line 3, latency: must be a number, not "fast".').waitFor();
    await choose("latency", "Metadata of the run");
    const preview = form.getByRole("region", { name: "First rows" }).getByRole("row");
    expect((await preview.nth(1).innerText()).split(/\s*\t\s*/)).toEqual([
      "Where, please?",
      "Paris",
      "Paris, I think",
      "tone dry",
    ]);
    await form.getByLabel("Dataset").fill("Tables");
    await expectAccessible(page);
    await form.getByRole("button", { name: "Upload 2 rows" }).click();
    await page.getByRole("link", { name: "Open" }).waitFor();

    // The same inputs in another format are the same examples.
    const jsonl = [{ question: "How many?", answer: 12 }, {}, { inputs: { question: "Why?" }, answer: "So." }];
    await drop(page, { "first try.jsonl": jsonl.map((row) => `${JSON.stringify(row)}\n`).join("\n") });
    await problems.getByText("line 3: the row has no input.").waitFor();
    await page.getByRole("button", { name: "Remove first try.jsonl" }).click();
    const [row] = jsonl;
    await drop(page, { "first try.jsonl": JSON.stringify({ ...row, correct: true }) });
    await form.getByLabel("Dataset").fill("Tables");
    await form.getByRole("button", { name: "Upload 1 row" }).click();
    await page.getByText("Change the name of the experiment.").waitFor();
    await form.getByLabel("Experiment").fill("second try");
    await form.getByRole("button", { name: "Upload 1 row" }).click();
    await page.getByRole("link", { name: "Open" }).nth(1).waitFor();
    const [dataset] = await get("/datasets?name=Tables");
    expect([dataset.example_count, dataset.session_count]).toEqual([2, 2]);
    const [session] = await get("/sessions?name=second try");
    expect((await get(`/sessions/${session.id}`)).feedback_stats.correct).toMatchObject({ n: 1, avg: 1 });
  });

  it("show the runs of an experiment, the worst first, and one of them whole", async () => {
    const { sessions } = await withSample("Runs");
    const page = await web.open(`/experiments/sessions/${sessions[2]}`);
    const scores = rows.flatMap((row) => scoreOf(2, row, "similarity") ?? []);
    const variance =
      meanOf(scores.map((score) => (score - meanOf(scores)) ** 2)) * (scores.length / (scores.length - 1));
    await page.getByText(`sd ${Math.sqrt(variance).toFixed(3)}, n ${scores.length}`).waitFor();
    await page.getByRole("button", { name: "similarity" }).click();
    await page.getByRole("button", { name: "similarity" }).click();
    const worst = page.getByRole("row").nth(1);
    await worst.getByText("No.", { exact: true }).waitFor();
    // Found by the number, and judged by the words, that it has where experiments are compared.
    await worst.getByText("fail", { exact: true }).waitFor();
    await expect.poll(() => worst.getByRole("cell").first().innerText()).toBe("200");
    await worst.click();
    const sheet = page.getByRole("dialog");
    await sheet.getByText("The answer does not contain “after 30 days”.").waitFor();
    await expectAccessible(page);
    const address = page.url();
    await page.keyboard.press("j");
    await sheet.getByText("The answer does not contain “Cancel plan”.").waitFor();
    await page.keyboard.press("k");
    await sheet.getByText("The answer does not contain “after 30 days”.").waitFor();
    await expect.poll(() => page.url()).toBe(address);
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });

    const id = page.getByTitle(sessions[2], { exact: true });
    await expect.poll(() => id.innerText()).toBe(sessions[2].slice(-8));
    await page.getByRole("button", { name: `Copy ID ${sessions[2]}` }).click();
    await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe(sessions[2]);

    await page.getByRole("combobox", { name: "Runs" }).click();
    await page.getByRole("option", { name: "Errors only" }).click();
    const failed = rows.length - scores.length;
    await page.getByText(`${failed} runs`, { exact: true }).waitFor();
    await expect.poll(() => page.getByText("The model did not respond within 30 s.").count()).toBe(failed);
    await page.getByRole("link", { name: "Compare with previous" }).click();
    await page.waitForURL(new RegExp(`experiments=${sessions[1]}%2C${sessions[2]}`));
  });

  it("close the open dialog with Esc, not a later notice, which only a click closes", async () => {
    const { at } = await withSample("Layers");
    const page = await web.open(`${at}?tab=examples&q=voucher`);
    await page.getByText("Is there a way to use a voucher on my phone?").click();
    const sheet = page.getByRole("dialog");
    await sheet.getByText(/at checkout, below the total/).waitFor();
    const uploads = page.getByRole("dialog", { name: "Upload experiments" });
    const notices = page.getByRole("region", { name: "Notifications" });
    for (const experiment_name of ["one more", "another"]) {
      const body = { ...sampleUploads(new Date())[0], dataset_name: "Layers", experiment_name };
      await drop(page, { [`${experiment_name}.json`]: JSON.stringify(body) });
      await notices.getByText(`“${experiment_name}” uploaded`).waitFor();
      if (experiment_name === "another") break;
      await expectAccessible(page);
      await notices.getByRole("button", { name: "Close" }).click();
      await notices.getByText("uploaded").waitFor({ state: "detached" });
      await uploads.waitFor();
    }
    // The dialog of the uploads is above the sheet.
    await page.keyboard.press("Escape");
    await uploads.waitFor({ state: "detached" });
    await sheet.waitFor();
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    await expect.poll(() => notices.getByText("uploaded").count()).toBe(1);
  });

  it("export an experiment as CSV and as JSON", async () => {
    const { sessions } = await withSample("Exported");
    const page = await web.open(`/experiments/sessions/${sessions[2]}`);
    const textOf = async (format: string) => {
      await page.getByRole("button", { name: "Actions for" }).click();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name: `Export as ${format}` }).click(),
      ]);
      expect(download.suggestedFilename()).toBe(`Exported_ ${V3.replace(":", "_")}.${format.toLowerCase()}`);
      return readFile(await download.path(), "utf8");
    };
    const lines = (await textOf("CSV")).trim().split("\n");
    expect([lines.length, lines[0]]).toEqual([
      201,
      expect.stringContaining("feedback.correctness,feedback.similarity"),
    ]);
    const examples = JSON.parse(await textOf("JSON"));
    expect(examples).toHaveLength(200);
    expect(examples.flatMap(({ runs }: { runs: { outputs: object }[] }) => runs)).toContainEqual(
      expect.objectContaining({ outputs: { answer: "No." } }),
    );
  });

  it("find examples by their words, and are where the client's links lead", async () => {
    const { dataset, at, sessions } = await withSample("Linked");
    const page = await web.open(`${at}?tab=examples`);
    await page.getByLabel("Search examples").fill("voucher");
    await page.getByText("Is there a way to use a voucher on my phone?").click();
    const sheet = page.getByRole("dialog");
    await sheet.getByText(/at checkout, below the total/).waitFor();
    const example = new URL(page.url()).searchParams.get("example");
    await page.goto(`${web.url}/o/t/datasets/${dataset}/e/${example}`);
    await sheet.getByText(/at checkout, below the total/).waitFor();
    const [run] = (await web.service.request("POST", "/api/v1/runs/query", { session: sessions[0], limit: 1 })).body
      .runs;
    await page.goto(`${web.url}${run.app_path}`);
    await sheet.getByText("Scores").waitFor();
    await page.goto(`${web.url}/o/t/datasets/${dataset}`);
    await rowOf(page, /v2/).waitFor();
    await page.goto(`${web.url}/o/t/datasets/${dataset}/compare?selectedSessions=${sessions.join("%2C")}`);
    await page.waitForURL(new RegExp(`${at}/compare\\?experiments=${sessions.join("%2C")}`));
  });

  it("create a dataset, add, edit and delete examples, and show earlier versions and splits", async () => {
    const page = await web.open("/experiments");
    await page.getByRole("button", { name: "Create dataset" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await page.keyboard.type("Questions by hand");
    await dialog.getByRole("button", { name: "Create dataset" }).click();
    await page.getByRole("heading", { name: "Questions by hand" }).waitFor();
    const add = async (question: string, splits: string) => {
      await page.getByRole("button", { name: "Add example" }).first().click();
      const form = page.getByRole("dialog", { name: "Add example" });
      await form.getByLabel("Input").fill(JSON.stringify({ question }));
      await form.getByLabel("Expected output").fill('{"answer": "yes"}');
      await form.getByLabel("Splits").fill(splits);
      await form.getByRole("button", { name: "Add example" }).click();
      await page.getByRole("dialog", { name: "Example", exact: true }).getByText(question).first().waitFor();
      await page.keyboard.press("Escape");
    };
    await add("Is it open on Sunday?", "test, hard");
    await add("Is it far?", "");
    await page.getByRole("tab", { name: "Examples 2" }).waitFor();
    await rowOf(page, /Sunday.*test, hard/).waitFor();
    // A question about one example must not become a question about the next one.
    const sheet = page.getByRole("dialog", { name: "Example" });
    await page.getByRole("table", { name: "Examples" }).getByRole("row").nth(1).click();
    await sheet.getByRole("button", { name: "Delete example" }).click();
    const opened = page.url();
    const question = page.getByRole("dialog", { name: "Delete this example?" });
    await question.waitFor();
    await page.keyboard.press("j");
    await question.getByRole("button", { name: "Cancel" }).click();
    await question.waitFor({ state: "detached" });
    expect(page.url()).toBe(opened);
    await page.keyboard.press("Escape");
    await page.getByRole("combobox", { name: "Split" }).click();
    await page.getByRole("option", { name: "hard" }).click();
    await rowOf(page, /far/).waitFor({ state: "detached" });
    await rowOf(page, /Sunday/).click();
    await sheet.getByRole("button", { name: "Edit" }).click();
    const form = page.getByRole("dialog", { name: "Edit example" });
    await form.getByLabel("Expected output").fill('{"answer": "only in December"}');
    await form.getByRole("button", { name: "Save" }).click();
    await sheet.getByText("only in December").waitFor();
    await sheet.getByRole("button", { name: "Delete example" }).click();
    await page.getByRole("dialog", { name: "Delete this example?" }).getByRole("button", { name: "Delete" }).click();
    await page.getByText("Example deleted").first().waitFor();
    await page.getByRole("tab", { name: "Examples 1" }).waitFor();
    // The newest of the earlier versions is that before the deletion.
    await page.getByRole("combobox", { name: "Version" }).click();
    await page.getByRole("option").nth(1).click();
    await rowOf(page, /Sunday.*only in December/).click();
    await sheet.getByText("only in December").waitFor();
    expect(await sheet.getByRole("button", { name: "Edit" }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "Add example" }).count()).toBe(0);
    await expectAccessible(page);
  });

  it("show the server's error message for what does not exist", async () => {
    const page = await web.open(`/experiments/sessions/${crypto.randomUUID()}`, { refused: [404] });
    await page.getByText("Session not found").waitFor();
    await page.goto(`${web.url}/app/experiments/datasets/${crypto.randomUUID()}`);
    await page.getByText("Dataset not found").waitFor();
    await expectAccessible(page);
  });

  it("begin with a page that is accessible", async () => {
    await takePictures(web, "start", "", (page) => page.getByText("Deployed agents appear here").waitFor());
  });

  it("are accessible on wide and narrow screens, in light and dark themes", async () => {
    const { at, sessions } = await withSample("Pictures");
    const chosen = `${at}?chosen=${sessions[0]},${sessions[2]}`;
    await takePictures(web, "dataset", chosen, (page) =>
      page.getByText(meanScore(2, "similarity"), { exact: true }).first().waitFor(),
    );
    const worst = `/experiments/sessions/${sessions[2]}?sort=feedback.similarity`;
    await takePictures(web, "experiment", worst, (page) => page.getByText("No.", { exact: true }).waitFor());
  });
});
