import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createProject, type TestProject } from "../support/project.ts";
import { until } from "../support/until.ts";
import { describeInBrowser, expectAccessible, PICTURES, WebTest } from "./browser.ts";
import { Film } from "./film.ts";

/** A careless assistant takes questions about refunds for questions about deliveries. */
const GRAPHS = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ question: Annotation, topic: Annotation, answer: Annotation });
export const support = new StateGraph(State)
  .addNode("classify", ({ question }, { configurable }) => ({
    topic: question.includes("refund") && !configurable.is_careless ? "refunds" : "deliveries",
  }))
  .addNode("respond", ({ topic }) => ({ answer: "See the page about " + topic + "." }))
  .addEdge("__start__", "classify").addEdge("classify", "respond").addEdge("respond", "__end__").compile();
`;

const REFUNDS = ["kettle", "blue chair", "desk lamp", "headphones", "winter coat", "rug", "toaster", "backpack"];
const DELIVERIES = ["bookshelf", "mirror", "tea set", "keyboard"];
const EXAMPLES = REFUNDS.length + DELIVERIES.length;
const QUESTION = "Where is the refund for my desk lamp?";

describeInBrowser("the way from a row that got worse to the repaired agent", () => {
  let project: TestProject;
  let web: WebTest;
  let dataset: string;
  let careless: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  const request = async (method: string, path: string, body?: unknown): Promise<any> => {
    const answer = await web.service.request(method, path, body);
    expect([path, answer.status < 300, answer.text]).toEqual([path, true, answer.text]);
    return answer.body;
  };
  beforeAll(async () => {
    const graphs = { support: "./graphs.mjs:support" };
    project = createProject({ "graphs.mjs": GRAPHS, "langgraph.json": JSON.stringify({ graphs }) });
    web = await WebTest.start({ config: project.config, env: { THREADMILL_TRACING: "on" } });
    const config = { configurable: { is_careless: true } };
    careless = (await request("POST", "/assistants", { graph_id: "support", name: "careless", config })).assistant_id;
    dataset = (await request("POST", "/api/v1/datasets", { name: "Questions" })).id;
    const questions = [
      ...REFUNDS.map((thing) => ["refunds", `Where is the refund for my ${thing}?`]),
      ...DELIVERIES.map((thing) => ["deliveries", `When does my ${thing} arrive?`]),
    ];
    for (const [topic, question] of questions) {
      const inputs = { question };
      const outputs = { ...inputs, topic, answer: `See the page about ${topic}.` };
      await request("POST", "/api/v1/examples", { dataset_id: dataset, inputs, outputs });
    }
  });
  afterEach(() => web.closePages());
  afterAll(async () => {
    await web.stop();
    project.drop();
  });

  const experiment = async (page: Page, assistant: string, name: string) => {
    await page.getByRole("button", { name: "Run experiment" }).click();
    const form = page.getByRole("dialog", { name: "Run experiment" });
    await form.getByLabel("Assistant", { exact: true }).click();
    await page.getByRole("option", { name: assistant, exact: true }).click();
    await form.getByLabel("Name").fill(name);
    await form.getByLabel("JSON match").uncheck();
    await form.getByLabel("Exact match").check();
    await form.getByRole("button", { name: "Run experiment" }).click();
    await page.getByText(`${name} has ended.`).waitFor();
  };
  const compare = (page: Page, name: string) =>
    page.getByRole("region", { name }).getByRole("link", { name: "Compare with the baseline" }).click();
  const verdict = (page: Page) => page.getByRole("region", { name: "Differences from the baseline" });

  it("leads through its trace and a changed checkpoint to a new example and a new verdict", async () => {
    const page = await web.open(`/experiments/datasets/${dataset}`);
    await experiment(page, "support", "first");
    await page.getByRole("button", { name: "Actions for first" }).click();
    await page.getByRole("menuitem", { name: "Set as baseline" }).click();
    await experiment(page, "careless", "second");
    await compare(page, "second");
    const film = new Film(PICTURES, "failing-row");
    const worse = verdict(page).getByText(/is worse on exact_match: −0\.\d+, p 0\.008/);
    await worse.waitFor();
    await film.take(page, "An experiment is significantly worse than the baseline. Which rows?", worse);
    await worse.click();

    // The trace of the agent arrives after the row.
    const sessions = await request("GET", `/api/v1/sessions?reference_dataset=${dataset}`);
    const second = sessions.find((session: { name: string }) => session.name === "second");
    await until("the traces of the agent are stored", async () => {
      const { runs } = await request("POST", "/api/v1/runs/query", { session: [second.id], limit: 100 });
      return runs.filter(({ name }: { name: string }) => name === "respond").length === EXAMPLES;
    });
    const row = page.getByRole("row", { name: QUESTION });
    await row.waitFor();
    await film.take(page, "These became worse. Open one.", row);
    await row.click();
    const result = page.getByRole("dialog").getByRole("region", { name: "second" });
    const trace = result.getByRole("link", { name: "Trace", exact: true });
    await trace.waitFor();
    await film.take(page, "A question about a refund has an answer about deliveries. Open its trace.", trace);
    await trace.click();
    await page.getByRole("treegrid").getByText("respond").click();
    const checkpoint = page.getByRole("link", { name: "Open checkpoint" });
    await checkpoint.waitFor();
    await film.take(page, "The node before has written the wrong topic. Open the checkpoint between them.", checkpoint);
    await expectAccessible(page);
    await checkpoint.click();

    const history = page.getByRole("list", { name: "History" });
    await history.locator("[aria-current=step]", { hasText: "classify" }).waitFor();
    await history.getByRole("button", { name: "Edit state…" }).click();
    const state = page.getByRole("dialog", { name: "Edit state" }).getByLabel("State (JSON)");
    await state.fill((await state.inputValue()).replace("deliveries", "refunds"));
    const save = page.getByRole("button", { name: "Save and run from here" });
    await film.take(page, "Correct the state, and run the graph from there.", save);
    await save.click();
    await history.getByText("Branch 2 of 2").waitFor();
    const repaired = page.getByText("See the page about refunds.");
    await repaired.waitFor();
    await film.take(page, "The new branch has the right answer.", repaired);

    await page.getByRole("button", { name: "Thread actions" }).click();
    await page.getByRole("menuitem", { name: "Add to dataset" }).click();
    const form = page.getByRole("dialog", { name: "Add to dataset" });
    expect(JSON.parse(await form.getByLabel("Input").inputValue())).toEqual({ question: QUESTION });
    await form.getByRole("combobox", { name: "Dataset" }).click();
    await page.getByRole("option", { name: "Questions" }).click();
    await expectAccessible(page);
    const add = form.getByRole("button", { name: "Add example" });
    await film.take(page, "Save it as an example of the dataset.", add);
    await add.click();
    await page.getByText("Example added").waitFor();
    const examples: { inputs: object; outputs: object }[] = await request("GET", `/api/v1/examples?dataset=${dataset}`);
    expect(examples.length).toBe(EXAMPLES + 1);
    const inputs = { question: QUESTION };
    const outputs = { ...inputs, topic: "refunds", answer: "See the page about refunds." };
    expect(examples.filter((example) => JSON.stringify(example.inputs) === JSON.stringify(inputs))).toMatchObject([
      { inputs, outputs },
      { inputs, outputs },
    ]);

    // The agent is repaired. The example that was added is open beside the button that runs the next experiment.
    await page.getByRole("dialog", { name: "Example" }).waitFor();
    await request("PATCH", `/assistants/${careless}`, { config: { configurable: { is_careless: false } } });
    await experiment(page, "careless", "third");
    await page.getByRole("dialog", { name: "Example" }).getByRole("button", { name: "Close" }).click();
    await compare(page, "third");
    const same = verdict(page).getByText("No statistically significant differences from the baseline.");
    await same.waitFor();
    await film.take(page, "With the repaired agent, the next experiment is as good as the baseline.", same);
    film.end();
    await page.getByTitle(/^p = 1, McNemar's test/).waitFor();
    // The new example has no result in the baseline.
    await page
      .getByText(`n ${EXAMPLES} of ${EXAMPLES + 1}`)
      .first()
      .waitFor();
  });
});
