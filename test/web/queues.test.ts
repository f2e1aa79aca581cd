import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { experimentOf } from "../experiments/experiment.ts";
import { run, type TestRun, TraceClient } from "../traces/trace-client.ts";
import { AGO, describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";
import { QUESTION, sendAgentTrace } from "./sample-traces.ts";

const API = "/api/v1/annotation-queues";

describeInBrowser("the pages of annotation queues", () => {
  let web: WebTest;
  let client: TraceClient;
  beforeAll(async () => {
    web = await WebTest.start();
    client = new TraceClient(web.service);
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const post = async (path: string, body: unknown) => (await client.json("POST", path, body)).body;
  const feedbackOn = async ({ id }: TestRun) =>
    (await client.get(`/feedback?run=${id}`)).body.map(
      ({ key, score, value, comment, feedback_source }: Record<string, unknown>) => ({
        key,
        score,
        value,
        comment,
        feedback_source,
      }),
    );
  const done = (page: Page) => page.getByRole("button", { name: "Done" });
  const progress = (page: Page, text: string) => page.getByText(text, { exact: true }).waitFor();

  const CORRECT = {
    feedback_key: "correct",
    feedback_config: {
      type: "categorical",
      categories: [
        { value: 1, label: "Yes" },
        { value: 0, label: "No" },
      ],
    },
  };
  const RUBRIC = [
    { feedback_key: "correct", description: "Is it true?", is_required: true, score_descriptions: { "0": "False" } },
    { feedback_key: "tone", score_descriptions: { "1": "friendly" } },
  ];
  /** A queue with a rubric and runs whose questions are `q0`, `q1` ... */
  async function queueOf(name: string, count: number, fields: Record<string, unknown> = {}) {
    await post("/api/v1/feedback-configs", CORRECT);
    const queue = await post(API, { name, rubric_instructions: "Read **twice**.", rubric_items: RUBRIC, ...fields });
    const runs = Array.from({ length: count }, (_, index) =>
      run({ name: `answer ${index}`, at: index * 1_000, inputs: { question: `q${index}` } }),
    );
    await client.post(...runs);
    await post(
      `${API}/${queue.id}/runs`,
      runs.map(({ id }) => id),
    );
    return { id: queue.id as string, runs };
  }

  it("begin with what a queue is, create one with a rubric, and delete it", async () => {
    const page = await web.open("/queues");
    await page.getByText("No annotation queues yet").waitFor();
    await page.getByText("client.create_annotation_queue").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create queue" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Answers to check");
    await dialog.getByLabel("Instructions").fill("Read the whole answer.");
    await dialog.getByLabel("Reviewers per item").fill("2");
    await dialog.getByRole("button", { name: "Add feedback key" }).click();
    await dialog.getByLabel("Feedback key", { exact: true }).fill("helpful");
    await dialog.getByLabel("Question for the reviewer").fill("Does it help?");
    await expectAccessible(page);
    const name = dialog.getByRole("textbox", { name: "Name" });
    const given = await name.inputValue();
    await name.fill("");
    await dialog.getByRole("button", { name: "Create queue" }).click();
    await dialog.getByText("Enter a value.").waitFor();
    await expect.poll(() => name.evaluate((input) => input.matches(":focus"))).toBe(true);
    await expectAccessible(page);
    await name.fill(given);
    expect(await dialog.getByText("Enter a value.").count()).toBe(0);
    await dialog.getByRole("button", { name: "Create queue" }).click();
    await page.getByText("No items yet").waitFor();
    await expectAccessible(page);
    const id = new URL(page.url()).pathname.split("/").at(-1);
    await page.getByText(`add_runs_to_annotation_queue("${id}"`).waitFor();
    expect((await client.get(`/annotation-queues/${id}`)).body).toMatchObject({
      name: "Answers to check",
      rubric_instructions: "Read the whole answer.",
      num_reviewers_per_item: 2,
      rubric_items: [
        {
          feedback_key: "helpful",
          description: "Does it help?",
          is_required: true,
          feedback_config: {
            feedback_config: { type: "categorical", categories: [{ label: "Pass" }, { label: "Fail" }] },
          },
        },
      ],
    });
    await page.getByRole("button", { name: "Queue actions" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByText("Delete queue “Answers to check”?").waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No annotation queues yet").waitFor();
  });

  it("list the queues with the items that are left", async () => {
    const { id } = await queueOf("listed", 3, { description: "Answers of the bot", num_reviewers_per_item: 2 });
    const [item] = (await client.get(`/annotation-queues/${id}/runs`)).body;
    await post(`${API}/status/${item.queue_run_id}`, { status: "completed" });
    const page = await web.open("/queues?q=listed");
    const row = page.getByRole("row", { name: /listed/ });
    await row.waitFor();
    expect((await row.innerText()).split(/\s*\n\s*/)).toEqual([
      "listed",
      "2",
      "3",
      "2",
      expect.stringMatching(AGO),
      "Answers of the bot",
    ]);
    await row.getByRole("link").click();
    await page.getByRole("heading", { name: "listed", level: 1 }).waitFor();
    await progress(page, "1 of 3");
  });

  it("take feedback by the rubric for one item after the other, with the keyboard", async () => {
    const { id, runs } = await queueOf("reviewed", 3);
    const [first, second, third] = runs as [TestRun, TestRun, TestRun];
    const page = await web.open(`/queues/${id}`);
    await page.getByText("q0").waitFor();
    await page.locator("strong", { hasText: "twice" }).waitFor();
    await progress(page, "0 of 3");
    await page.keyboard.press("d");
    await page.getByRole("radio", { name: "Yes" }).and(page.locator(":invalid:focus")).waitFor();
    await page.getByRole("radio", { name: "Yes" }).check();
    await page.getByLabel("tone").fill("0.5");
    await page.getByLabel("Note").fill("Short.");
    await page.keyboard.press("Control+Enter");
    await page.getByText("q1").waitFor();
    await progress(page, "1 of 3");
    const { user_id } = (await web.service.request("GET", "/app/api/session")).body;
    const feedback_source = expect.objectContaining({ type: "app", user_id });
    const sorted = (await feedbackOn(first)).sort((a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1));
    expect(sorted).toEqual([
      { key: "correct", score: 1, value: "Yes", comment: null, feedback_source },
      { key: "note", score: null, value: null, comment: "Short.", feedback_source },
      { key: "tone", score: 0.5, value: null, comment: null, feedback_source },
    ]);

    await page.keyboard.press("s");
    await page.getByText("q2").waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe("?skip=1");
    await page.getByRole("radio", { name: /No/ }).check();
    await page.keyboard.press("d");
    await page.getByText("1 skipped item left").waitFor();
    expect(await feedbackOn(third)).toMatchObject([{ key: "correct", score: 0, value: "No" }]);
    expect(await feedbackOn(second)).toEqual([]);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Review skipped items" }).click();
    await page.getByText("q1").waitFor();
    await page.getByRole("radio", { name: "Yes" }).check();
    await done(page).click();
    await page.getByText("No items left to review").waitFor();
    await page.getByText("Completed items: 3.").waitFor();
  });

  it("show the feedback that the reviewer has given before, change it, and lead to the trace", async () => {
    const { id, runs } = await queueOf("again", 1);
    const [only] = runs as [TestRun];
    const page = await web.open(`/queues/${id}`);
    await page.getByRole("radio", { name: "Yes" }).check();
    await page.getByLabel("tone").fill("1");
    await done(page).click();
    await page.getByText("No items left to review").waitFor();
    const [item] = (await client.get(`/annotation-queues/${id}/runs`)).body;
    await post(`${API}/status/${item.queue_run_id}`, { status: null });
    await page.reload();
    await page.getByRole("radio", { name: "Yes" }).and(page.locator(":checked")).waitFor();
    await page.getByRole("radio", { name: /No/ }).check();
    await page.getByLabel("tone").fill("");
    await done(page).click();
    await page.getByText("No items left to review").waitFor();
    expect(await feedbackOn(only)).toMatchObject([{ key: "correct", score: 0, value: "No" }]);

    await post(`${API}/status/${item.queue_run_id}`, { status: null });
    await page.reload();
    await page.getByRole("link", { name: "Open trace" }).click();
    await page.waitForURL(`${web.url}/app/traces/${only.id}`);
  });

  it("get runs from their traces", async () => {
    const { root, answerModel } = await sendAgentTrace(client);
    const queue = await post(API, { name: "models" });
    const page = await web.open(`/traces/${root.id}?run=${answerModel.id}`);
    const open = () => page.getByRole("button", { name: "Add to queue" }).click();
    const choose = async (name: string) => {
      await page.getByRole("combobox", { name: "Queue" }).click();
      await page.getByRole("option", { name }).click();
    };
    await open();
    await choose("models");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Add run" }).click();
    await page.getByText("Run added to the queue").waitFor();
    await open();
    await page.getByRole("combobox", { name: "Queue" }).click();
    await page.getByRole("option", { name: "models" }).getByText("Already contains this run").waitFor();
    await page.getByRole("option", { name: "New queue" }).click();
    await page.getByLabel("Name").fill("fresh");
    await page.getByRole("button", { name: "Add run" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const found = (await client.get(`/annotation-queues/${answerModel.id}/queues`)).body;
    expect(found.map(({ name }: { name: string }) => name)).toEqual(["models", "fresh"]);
    await page.goto(`${web.url}/app/queues/${queue.id}`);
    await page.getByText(QUESTION).first().waitFor();
    await page.getByRole("button", { name: "Add feedback" }).waitFor();
    await page.goto(`${web.url}/app/queues`);
    await page.getByRole("row", { name: /fresh/ }).waitFor();
  });

  it("get rows of experiments, also of uploaded ones, which have no trace", async () => {
    const upload = experimentOf(2, () => [], { dataset_name: "parcels", experiment_name: "uploaded" });
    const { experiment, dataset } = await post("/api/v1/datasets/upload-experiment", upload);
    await post(API, { name: "rows" });
    const page = await web.open(`/experiments/sessions/${experiment.id}`);
    const add = async () => {
      await page.getByRole("dialog").getByRole("button", { name: "Add to queue" }).click();
      await page.getByRole("combobox", { name: "Queue" }).click();
      await page.getByRole("option", { name: "rows" }).click();
      await page.getByRole("button", { name: "Add run" }).click();
      await page.getByText("Run added to the queue").first().waitFor();
    };
    const rows = page.getByRole("table").getByRole("row");
    await rows.nth(1).click();
    await add();
    await page.goto(`${web.url}/app/experiments/datasets/${dataset.id}/compare?experiments=${experiment.id}`);
    await page.getByRole("table", { name: "Examples" }).getByRole("row").last().click();
    await add();
    await page.goto(`${web.url}/app/inbox`);
    await page.getByRole("tab", { name: "rows (2)" }).click();
    await page.getByText("Input", { exact: true }).waitFor();
    await page.keyboard.press("s");
    await page.waitForURL(/skip=1/);
    await page.getByRole("button", { name: "Done", disabled: false }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("d");
    await page.getByText("1 skipped item left").waitFor();
    await page.getByRole("tab", { name: "Threads" }).click();
    await page.getByText("Nothing needs your input").waitFor();
    await page.getByRole("tab", { name: "rows (1)" }).click();
    await progress(page, "1 of 2");
    await page.getByRole("link", { name: "Open trace" }).click();
    await page.waitForURL(new RegExp(`/app/experiments/sessions/${experiment.id}`));
  });

  it("say that a queue does not exist, and fit on a small phone", async () => {
    const { id } = await queueOf("small", 1);
    const page = await web.open("/queues/7f7b1b1e-0000-4000-8000-000000000000", { refused: [404], narrow: true });
    await page.getByRole("alert").getByText("queue not found", { exact: false }).waitFor();
    await page.setViewportSize({ width: 360, height: 640 });
    const key = "a_feedback_key_without_any_break_that_is_longer_than_the_width_of_a_small_phone";
    await client.json("PATCH", `${API}/${id}`, {
      rubric_items: [{ feedback_key: key, description: "Why? ".repeat(40) }],
    });
    for (const [path, text] of [
      [`/queues/${id}`, "Why?"],
      ["/queues", "small"],
      ["/prompts", "No prompts yet"],
    ] as const) {
      await page.goto(`${web.url}/app${path}`);
      await page.getByText(text).first().waitFor();
      const right =
        "Math.max(...[...document.querySelectorAll('main *')].map((each) => each.getBoundingClientRect().right))";
      await expect.poll(() => page.evaluate(right)).toBeLessThanOrEqual(360);
      await expectAccessible(page);
    }
  });

  it("are accessible on both sizes and in both themes", async () => {
    const { root } = await sendAgentTrace(client);
    const { id } = await queueOf("Answers to check", 4, { description: "Answers of the support agent" });
    const queue = await post(API, { name: "Support", rubric_instructions: "Read it **twice**.", rubric_items: RUBRIC });
    await post(`${API}/${queue.id}/runs`, [root.id]);
    await post("/api/v1/feedback", { run_id: root.id, key: "helpful", score: 1, comment: "Complete." });
    await takePictures(web, "queues", "/queues", (page) => page.getByText("Support").first().waitFor());
    await takePictures(web, "queue", `/queues/${queue.id}`, (page) =>
      page.getByText("The link expires after").first().waitFor(),
    );
    await takePictures(web, "queue-done", `/queues/${id}?skip=4`, (page) => page.getByText("4 skipped").waitFor());
  });
});
