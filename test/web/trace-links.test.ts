import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { run, TraceClient } from "../traces/trace-client.ts";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";
import { QUESTION, sendAgentTrace } from "./sample-traces.ts";

const ROOT_KEY = "root-0123456789abcdef0123456789abcdef";
const key = { "X-Api-Key": ROOT_KEY };

describeInBrowser("the links between traces and other pages", () => {
  let web: WebTest;
  let client: TraceClient;
  beforeAll(async () => {
    web = await WebTest.start({ env: { API_KEYS: ROOT_KEY } });
    client = new TraceClient(web.service, key);
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const panel = (page: Page) => page.getByRole("region", { name: "Selected run" });
  const open = (path: string, refused: number[] = []) => web.open(path, { key: ROOT_KEY, refused });
  const post = async (path: string, body: object) => (await web.service.request("POST", path, body, key)).body;
  const pathOf = (page: Page) => page.url().replace(`${web.url}/app`, "");

  it("open a run of any level by its id, as official clients print it", async () => {
    const { root, planModel } = await sendAgentTrace(client);
    const { session_id, app_path } = await client.read(planModel.id);
    const page = await open(`/runs/${planModel.id}`, [404]);
    await panel(page).getByText("Plan the next step.").waitFor();
    expect(pathOf(page)).toBe(`/traces/${root.id}?run=${planModel.id}`);
    await page.goto(`${web.url}${app_path}?trace_id=${root.id}&start_time=2026-01-31T12:00:00`);
    await panel(page).getByText("Plan the next step.").waitFor();
    await page.goto(`${web.url}/o/t/projects/p/${session_id}`);
    await page.getByRole("heading", { name: "support" }).waitFor();
    expect(pathOf(page)).toBe(`/traces/projects/${session_id}`);
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder(/Search pages/).fill(planModel.id);
    await page.getByRole("option", { name: /gpt-4.1-mini/ }).click();
    await page.waitForURL(`${web.url}/app/traces/${root.id}?run=${planModel.id}`);
    await page.goto(`${web.url}/app/runs/${randomUUID()}`);
    await page.getByRole("alert").getByText("Run not found").waitFor();
  });

  it("lead from the run of a deployment to the deployment, not to runs of the service", async () => {
    const [id, deployment_id] = [randomUUID(), randomUUID()];
    const metadata = { run_id: id, thread_id: randomUUID(), assistant_id: randomUUID(), deployment_id };
    await client.post(run({ id, extra: { metadata } }));
    const page = await open(`/traces/${id}`);
    await panel(page).getByRole("tab", { name: "Details" }).click();
    const link = panel(page).getByRole("link", { name: "Open deployment" });
    await expect.poll(() => link.getAttribute("href")).toBe(`/app/deployments/${deployment_id}`);
    expect(
      await panel(page)
        .getByRole("link", { name: /Open (run|thread)/ })
        .count(),
    ).toBe(0);
  });

  it("show projects without traces, which other clients create, and delete them", async () => {
    const project = await post("/api/v1/sessions", { name: "loose" });
    await post("/api/v1/feedback", { session_id: project.id, key: "verdict", score: 0.75 });
    const page = await open(`/experiments/sessions/${project.id}`);
    await page.getByText("No traces yet").waitFor();
    expect(pathOf(page)).toBe(`/traces/projects/${project.id}`);
    await page.getByText('export LANGSMITH_PROJECT="loose"').waitFor();
    await page.getByText("0.750").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Actions for loose" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByText("Delete project “loose”?").waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("Project deleted").waitFor();
    expect((await web.service.request("GET", `/api/v1/sessions/${project.id}`, undefined, key)).status).toBe(404);
  });

  it("lead from a row of an experiment to its trace and back, and from feedback to the evaluator", async () => {
    const dataset = await post("/api/v1/datasets", { name: "capitals" });
    const example = await post("/api/v1/examples", {
      dataset_id: dataset.id,
      inputs: { country: "Peru" },
      outputs: { city: "Lima" },
    });
    const session = await post("/api/v1/sessions", { name: "traced", reference_dataset_id: dataset.id });
    const root = run({ name: "target", session_name: "traced", reference_example_id: example.id });
    const child = run({ name: "model", parent: root, session_name: "traced" });
    const evaluator = run({
      name: "exact match",
      session_name: "evaluators",
      extra: { metadata: { target_run_id: root.id } },
    });
    await client.post(root, child, evaluator);
    await post("/api/v1/feedback", {
      run_id: root.id,
      key: "correct",
      score: 1,
      feedback_source: { type: "model", metadata: { __run: { run_id: evaluator.id } } },
    });
    const page = await open(`/experiments/sessions/${session.id}?run=${root.id}`);
    await page.getByRole("link", { name: "Open trace" }).click();
    await page.getByRole("treegrid").getByText("model").waitFor();
    expect(pathOf(page)).toBe(`/traces/${root.id}`);
    await panel(page).getByRole("tab", { name: "Feedback (1)" }).click();
    await panel(page).getByRole("link", { name: "Evaluator trace" }).click();
    await page.getByRole("heading", { name: "exact match", level: 1 }).waitFor();
    await panel(page).getByRole("tab", { name: "Details" }).click();
    await panel(page).getByRole("link", { name: "Open evaluated run" }).click();
    await page.getByRole("heading", { name: "target", level: 1 }).waitFor();
    await panel(page).getByRole("tab", { name: "Details" }).click();
    await panel(page).getByRole("link", { name: "Open experiment" }).click();
    await page.waitForURL(`${web.url}/app/experiments/sessions/${session.id}?run=${root.id}`);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await page
      .getByRole("main")
      .or(page.getByRole("banner"))
      .getByRole("link", { name: "Traces", exact: true })
      .click();
    await page.getByRole("link", { name: "target" }).waitFor();

    await page.goto(`${web.url}/app/experiments/datasets/${dataset.id}/compare?experiments=${session.id}`);
    await page.getByRole("row", { name: /Peru/ }).click();
    await page.getByRole("dialog").getByRole("link", { name: "Trace", exact: true }).click();
    await page.waitForURL(`${web.url}/app/traces/${root.id}`);

    const uploaded = await post("/api/v1/datasets/upload-experiment", {
      experiment_name: "uploaded",
      dataset_name: "uploaded",
      experiment_start_time: "2026-01-31T12:00:00Z",
      experiment_end_time: "2026-01-31T12:00:01Z",
      results: [
        {
          row_id: randomUUID(),
          inputs: { q: 1 },
          expected_outputs: {},
          actual_outputs: { a: 1 },
          evaluation_scores: [],
          start_time: "2026-01-31T12:00:00Z",
          end_time: "2026-01-31T12:00:01Z",
        },
      ],
    });
    const [row] = (await post("/api/v1/runs/query", { session: [uploaded.experiment.id] })).runs;
    await page.goto(`${web.url}/app/runs/${row.id}`);
    await page.getByRole("dialog").getByText("Scores").waitFor();
    expect(await page.getByRole("link", { name: "Open trace" }).count()).toBe(0);
  });

  it("lead from a run of an agent to its trace and back", async () => {
    const { thread_id } = await post("/threads", {});
    const { run_id, assistant_id } = await post(`/threads/${thread_id}/runs`, {
      assistant_id: "echo",
      input: { messages: [{ role: "user", content: "hello" }] },
    });
    await web.service.request("GET", `/threads/${thread_id}/runs/${run_id}/join`, undefined, key);
    // What the agent server sends, and what overwrites nothing if it has sent it.
    const metadata = { run_id, thread_id, assistant_id, graph_id: "echo" };
    await client.post(run({ id: run_id, name: "echo", session_name: "echo", extra: { metadata } }));
    const page = await open(`/runs?run=${run_id}`);
    await page.getByRole("link", { name: "Open trace" }).click();
    await page.getByRole("heading", { name: "echo", level: 1 }).waitFor();
    await panel(page).getByRole("tab", { name: "Details" }).click();
    await panel(page).getByRole("link", { name: "Open thread" }).click();
    await page.waitForURL(`${web.url}/app/threads/${thread_id}`);
    await page.getByRole("radio", { name: "Runs" }).click();
    await page.getByRole("link", { name: "Trace", exact: true }).click();
    await page.waitForURL(`${web.url}/app/traces/${run_id}`);
  });

  it("make an example of a run, which leads back to it", async () => {
    const { root, retried } = await sendAgentTrace(client, { session_name: "examples" });
    const page = await open(`/traces/${root.id}?run=${retried.id}`);
    await page.getByRole("button", { name: "Add to dataset" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("combobox", { name: "Dataset" }).click();
    await page.getByRole("option", { name: "New dataset" }).click();
    await dialog.getByRole("textbox", { name: "Name" }).fill("searches");
    await dialog.getByLabel("Expected output").fill('{"documents": []}');
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Add example" }).click();
    await page.getByRole("heading", { name: "searches" }).waitFor();
    const [dataset] = (await client.get("/datasets?name=searches")).body;
    const [example] = (await client.get(`/examples?dataset=${dataset.id}`)).body;
    expect(example).toMatchObject({
      inputs: retried.inputs,
      outputs: { documents: [] },
      source_run_id: retried.id,
    });
    await page.getByRole("link", { name: "Open source run" }).click();
    await page.waitForURL(`${web.url}/app/traces/${root.id}?run=${retried.id}`);
  });

  it("share a trace with readers without a key, until the link is revoked", async () => {
    const { root, search, answerModel } = await sendAgentTrace(client, { session_name: "shared" });
    const page = await open(`/traces/${root.id}`);
    await page.getByRole("button", { name: "Share" }).click();
    await page.getByRole("button", { name: "Create link" }).click();
    await page.getByRole("button", { name: "Copy link" }).click();
    await expectAccessible(page);
    const link = (await page.evaluate("navigator.clipboard.readText()")) as string;
    expect(link).toMatch(new RegExp(`^${web.url}/public/[0-9a-f-]{36}/r$`));
    const path = link.slice(web.url.length).replace(/\/r$/, "");

    await takePictures(web, "trace-shared", path, (visitor) => panel(visitor).getByText(QUESTION).first().waitFor());
    const visitor = await web.open(path, { refused: [404] });
    await visitor.goto(link);
    await panel(visitor).getByText(QUESTION).first().waitFor();
    await visitor.getByRole("treegrid").getByText("gpt-4.1", { exact: true }).click();
    await panel(visitor).getByText("The link expires after").waitFor();
    await expect.poll(() => new URL(visitor.url()).searchParams.get("run")).toBe(answerModel.id);
    expect(await visitor.getByRole("navigation", { name: "Pages" }).count()).toBe(0);
    for (const name of ["Share", "Add to dataset", "Search"])
      expect(await visitor.getByRole("button", { name, exact: true }).count()).toBe(0);
    expect(await visitor.getByRole("tab", { name: /Feedback/ }).count()).toBe(0);

    await page.getByRole("button", { name: "Revoke link" }).click();
    await page.getByText("Link revoked").waitFor();
    await visitor.reload();
    await visitor.getByRole("alert").getByText("Share not found").waitFor();

    const { body } = await client.json("PUT", `/api/v1/runs/${search.id}/share`, {});
    await visitor.goto(`${web.url}/public/${body.share_token}/r`);
    await visitor.getByRole("heading", { name: "search", level: 1 }).waitFor();
    await expect.poll(() => visitor.getByRole("treegrid").getByRole("row").count()).toBe(4);
    expect(await visitor.getByText("no parent").count()).toBe(0);
  });
});
