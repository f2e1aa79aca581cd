import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import { insertEndedRuns } from "../support/rows.ts";
import { openOn } from "../support/storage.ts";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type Wire = any;

describeInBrowser("the runs", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start({ config: "test/graphs/scenarios/langgraph.json" });
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const post = async (path: string, body: object = {}): Promise<Wire> =>
    (await web.service.request("POST", path, body)).body;
  const newThread = async (): Promise<string> => (await post("/threads")).thread_id;
  const newRun = async (body: object, thread_id?: string): Promise<Wire> =>
    post(`/threads/${thread_id ?? (await newThread())}/runs`, body);
  const SLOW = { assistant_id: "slow", input: { steps: ["in"], door: null } };
  const LATER = { assistant_id: "chain", input: { steps: ["in"] }, after_seconds: 3600 };
  const rowOf = (page: Page, { run_id }: Wire) => page.getByRole("row").filter({ hasText: run_id.slice(-8) });
  const read = async ({ thread_id, run_id }: Wire) =>
    (await web.service.request("GET", `/threads/${thread_id}/runs/${run_id}`)).body;

  it("explain what to do while there are none", async () => {
    const page = await web.open("/runs");
    await page.getByText("No runs yet").waitFor();
    await expect.poll(() => page.locator("pre").innerText()).toContain(`curl ${web.url}/runs`);
  });

  it("appear as they start and end, and one is cancelled so that its steps stay", async () => {
    const page = await web.open("/runs");
    const run = await newRun(SLOW);
    const row = rowOf(page, run);
    await row.getByText("running").waitFor();
    await page.getByRole("img", { name: /Queue: pending 0, max \d+; running 1, max \d+$/ }).waitFor();
    await row.getByRole("button", { name: `Cancel run ${run.run_id}` }).click();
    await page.getByRole("menuitem", { name: /Interrupt/ }).click();
    await row.getByText("interrupted").waitFor();
    expect((await read(run)).status).toBe("interrupted");
    expect((await web.service.request("GET", `/threads/${run.thread_id}/state`)).body.values.steps).toContain("in");
  });

  it("open with their inputs, and one is cancelled so that nothing of it is left", async () => {
    const run = await newRun(SLOW);
    const page = await web.open("/runs?status=active");
    await rowOf(page, run).getByRole("link").first().click();
    const sheet = page.getByRole("dialog");
    await sheet.getByText("Input").waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get("run")).toBe(run.run_id);
    await page.reload();
    await sheet.getByText("running").waitFor();
    await sheet.getByRole("button", { name: "Cancel options" }).click();
    await page.getByRole("menuitem", { name: /Roll back/ }).click();
    await sheet.getByText("Run not found").waitFor();
    expect((await read(run)).status).toBeUndefined();
    await page.keyboard.press("Escape");
    await page.getByText("No runs match").waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe("?status=active");
  });

  it("have previews of their inputs, and of their outputs or errors", async () => {
    const content = "Where is my order?\nIt has the number 7.";
    const running = await newRun(SLOW);
    const asked = await newRun({
      assistant_id: "talk",
      input: { topic: "orders", messages: [{ role: "user", content }] },
    });
    const failed = await newRun({ assistant_id: "fails", input: { steps: ["in"] } });
    const page = await web.open("/runs");
    await rowOf(page, asked).getByText("Where is my order? It has the number 7.").waitFor();
    await rowOf(page, asked).getByText("yes", { exact: true }).waitFor();
    await rowOf(page, failed).getByText('{"steps":["in"]}').waitFor();
    await rowOf(page, failed)
      .locator(".text-error")
      .getByText(/Error: /)
      .waitFor();
    await rowOf(page, running).getByText('"door":null').waitFor();
    // The page reads the output when the run has ended.
    await web.service.request("POST", `/threads/${running.thread_id}/runs/${running.run_id}/cancel?wait=1`);
    await rowOf(page, running).getByText('{"steps":["in"').nth(1).waitFor();
  });

  it("make an example of their input and output", async () => {
    const run = await newRun({ assistant_id: "chain", input: { steps: ["in"] } });
    const page = await web.open(`/runs?run=${run.run_id}`);
    await page.getByRole("button", { name: "Add to dataset" }).click();
    const dialog = page.getByRole("dialog", { name: "Add to dataset" });
    await dialog.getByRole("textbox", { name: "Name" }).fill("chains");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Add example" }).click();
    await page.getByRole("heading", { name: "chains" }).waitFor();
    const [dataset] = (await web.service.request("GET", "/api/v1/datasets?name=chains")).body;
    const { body: examples } = await web.service.request("GET", `/api/v1/examples?dataset=${dataset.id}`);
    expect(examples).toMatchObject([
      { inputs: { steps: ["in"] }, outputs: { steps: ["in", "a", "b", "c"] }, source_run_id: run.run_id },
    ]);
  });

  it("are cancelled several at a time: the selected ones, or all that wait", async () => {
    const thread_id = await newThread();
    const [first, second, third] = [
      await newRun(LATER, thread_id),
      await newRun(LATER, thread_id),
      await newRun(LATER),
    ] as const;
    const page = await web.open(`/runs?status=pending`);
    for (const run of [first, third]) await page.getByLabel(`Select run ${run.run_id}`).check();
    await page.getByRole("button", { name: "Cancel 2…" }).click();
    await expectAccessible(page);
    await page.getByRole("radio", { name: /Roll back/ }).check();
    await page.getByRole("button", { name: "Cancel runs", exact: true }).click();
    // As long as the question is open, nothing behind it is there for who asks by roles.
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await rowOf(page, first).waitFor({ state: "detached" });
    await rowOf(page, third).waitFor({ state: "detached" });
    expect([await read(first), await read(second)].map(({ status }) => status)).toEqual([undefined, "pending"]);
    await page.keyboard.press("x");
    await page.getByRole("radio", { name: /^Pending Runs of all threads/ }).check();
    await page.getByRole("button", { name: "Cancel runs", exact: true }).click();
    await page.getByText("No runs match").waitFor();
    expect((await read(second)).status).toBe("interrupted");
  });

  it("are filtered by status, time, assistant and thread, with all filters in the address", async () => {
    const failed = await newRun({ assistant_id: "fails", input: { steps: ["in"] } });
    await web.service.request("GET", `/threads/${failed.thread_id}/runs/${failed.run_id}/join`);
    const page = await web.open("/runs");
    const choose = async (filter: string, option: string) => {
      await page.getByRole("combobox", { name: filter }).click();
      await page.getByRole("option", { name: option }).click();
    };
    await choose("Status", "error");
    await choose("Time", "Last hour");
    await choose("Assistant", "fails");
    await page.getByRole("textbox", { name: "Thread" }).fill(failed.thread_id);
    await rowOf(page, failed).getByText("error", { exact: true }).waitFor();
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await page.reload();
    await rowOf(page, failed).waitFor();
    const { status, since, assistant, thread } = Object.fromEntries(new URL(page.url()).searchParams);
    expect({ status, since, assistant, thread }).toEqual({
      status: "error",
      since: "1h",
      assistant: failed.assistant_id,
      thread: failed.thread_id,
    });
    // The part of an id that the table shows is enough; one that no run has finds none, and is no mistake.
    await page.getByRole("textbox", { name: "Thread" }).fill(failed.thread_id.slice(-8).toUpperCase());
    await rowOf(page, failed).waitFor();
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await page.getByRole("textbox", { name: "Thread" }).fill("no-such-part");
    await page.getByText("No runs match").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("");
  });

  it("are labelled as stateless beside long names of assistants, too", async () => {
    const name = "An assistant whose name is longer than its column";
    const { assistant_id } = await post("/assistants", { graph_id: "chain", name });
    const run = await post("/runs", { ...LATER, assistant_id });
    const page = await web.open("/runs?status=pending");
    const cell = rowOf(page, run).getByRole("cell").filter({ hasText: name });
    const label = cell.getByText("stateless", { exact: true });
    await label.waitFor();
    const rightOf = async (element: typeof label) => {
      const box = await element.boundingBox();
      return (box?.x ?? 0) + (box?.width ?? 0);
    };
    await expect.poll(() => rightOf(label)).toBeLessThanOrEqual(await rightOf(cell));
    await post("/runs/cancel", { status: "all" });
  });

  it("are accessible on wide and narrow screens, in light and dark themes", async () => {
    const running = await newRun(SLOW);
    for (const body of [LATER, { ...LATER, after_seconds: 0 }]) await newRun(body);
    await takePictures(web, "runs", "/runs", (page) => page.getByText("running").last().waitFor());
    await takePictures(web, "run", `/runs?run=${running.run_id}`, (page) =>
      page.getByRole("heading", { name: "Input" }).waitFor(),
    );
    await post("/runs/cancel", { status: "all" });
  });
});

describeInBrowser("the monitoring", () => {
  let web: WebTest;
  /** Assistant IDs by graph. */
  let ids: Record<string, string>;
  /** In the bucket of 8 hours that began `DAYS` days before the current one, `chain` ended four runs, and in each of the 20 before, one. */
  const DAYS = 3;
  const BUCKET = 8 * 3_600_000;
  const at = Math.floor(Date.now() / BUCKET) * BUCKET - DAYS * 3 * BUCKET;
  /** Of 90 points. */
  const POINT = 89 - DAYS * 3;

  beforeAll(async () => {
    web = await WebTest.start({ config: "test/graphs/scenarios/langgraph.json" });
    const found: Wire[] = (await web.service.request("POST", "/assistants/search", { limit: 100 })).body;
    ids = Object.fromEntries(found.map(({ graph_id, assistant_id }) => [graph_id, assistant_id]));
    const run = (graph: string, status: "success" | "error" | "timeout", ended_at: number, duration_ms: number) => ({
      tenant_id: DEFAULT_TENANT,
      thread_id: randomUUID(),
      assistant_id: ids[graph] as string,
      status,
      created_at: ended_at - duration_ms - 250,
      started_at: ended_at - duration_ms,
      ended_at,
    });
    const storage = openOn(web.service.database);
    await insertEndedRuns(storage, [
      run("chain", "success", at, 1_000),
      run("chain", "error", at + 1, 2_000),
      run("chain", "timeout", at + 2, 3_000),
      run("chain", "success", at + BUCKET - 1, 6_000),
      ...Array.from({ length: 20 }, (_, i) => run("chain", "success", at - i * BUCKET - 1, 500 + 100 * i)),
      run("fails", "error", at - BUCKET, 80),
    ]);
    await storage.close();
    const start_time = new Date(at).toISOString();
    await web.service.request("POST", "/api/v1/runs", {
      ...{ id: randomUUID(), name: "chain", run_type: "llm", start_time, end_time: start_time, inputs: {} },
      extra: { metadata: { assistant_id: ids.chain } },
      outputs: { usage_metadata: { input_tokens: 900, output_tokens: 100, total_tokens: 1_000, total_cost: 0.25 } },
    });
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const chart = (page: Page, name: string) => page.getByRole("slider", { name });
  const textOf = (page: Page, name: string) => chart(page, name).getAttribute("aria-valuetext");
  const positionOf = async (page: Page, name: string) => {
    const box = (await chart(page, name).boundingBox()) as { width: number; height: number };
    return { x: (box.width * POINT) / 89, y: box.height / 2 };
  };
  const cellsOf = async (page: Page, assistant: string): Promise<string[]> =>
    page.getByRole("row").filter({ hasText: assistant }).getByRole("cell").allInnerTexts();

  it("says what will be there, and shows the numbers of each assistant and point", async () => {
    const page = await web.open(`/runs/monitoring?assistant=${ids.slow}`);
    await page.getByText("No runs ended in this time").waitFor();
    await expectAccessible(page);
    const choose = async (filter: string, option: string) => {
      await page.getByRole("combobox", { name: filter }).click();
      await page.getByRole("option", { name: option }).click();
    };
    await choose("Time range", "Last 30 days");
    await choose("Assistant", "Any assistant");
    await page.getByRole("link", { name: "chain" }).waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe("?range=30d");
    await page.getByText("$0.250").first().waitFor();
    await expect
      .poll(() => cellsOf(page, "All assistants"))
      .toEqual(["All assistants", "25", "3", "12 %", "1.50 s", "5.28 s", "250 ms", "250 ms", "1,000", "$0.250"]);
    await expect
      .poll(() => cellsOf(page, "chain"))
      .toEqual(["chain", "24", "2", "8.3 %", "1.55 s", "5.31 s", "250 ms", "250 ms", "1,000", "$0.250"]);
    expect((await cellsOf(page, "fails")).slice(0, 6)).toEqual(["fails", "1", "1", "100 %", "80 ms", "80 ms"]);

    for (const [name, text] of [
      ["Ended runs", "runs 4, errors 2"],
      ["Error rate", "errors 50 %"],
      ["Duration", "p50 2.50 s, p99 5.91 s"],
      ["Queue time", "p50 250 ms, p99 250 ms"],
      ["Tokens", "total 1,000, output 100"],
      ["Cost", "total $0.250"],
    ] as const) {
      await expect.poll(() => textOf(page, name)).toMatch(/(runs 0, errors 0|total 0, output 0|total \$0|–)$/);
      await chart(page, name).hover({ position: await positionOf(page, name) });
      await expect.poll(() => textOf(page, name)).toContain(`: ${text}`);
    }
    await page.getByRole("link", { name: "fails" }).click();
    await page.getByText("All assistants").waitFor({ state: "detached" });
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
  });

  it("leads from each point and number to its runs, also with the keyboard", async () => {
    const page = await web.open(`/runs/monitoring?range=30d&assistant=${ids.chain}`);
    const expectRuns = async (count: number, search: Record<string, string | undefined>) => {
      await page.getByRole("combobox", { name: "Status" }).waitFor();
      await page.getByRole("table", { name: "Runs" }).waitFor();
      await expect.poll(() => page.getByRole("row").count()).toBe(count + 1);
      const { status, assistant, ended_from, ended_until } = Object.fromEntries(new URL(page.url()).searchParams);
      expect({ status, assistant, ended_from, ended_until }).toMatchObject(search);
    };
    const clickPoint = async (name: string) => {
      // The chart is measured once its numbers are there.
      await page.getByText("$0.250").first().waitFor();
      await chart(page, name).click({ position: await positionOf(page, name) });
    };
    const bucket = {
      ended_from: new Date(at).toISOString(),
      ended_until: new Date(at + BUCKET).toISOString(),
      assistant: ids.chain,
    };
    await clickPoint("Duration");
    await expectRuns(4, { ...bucket, status: undefined });
    await page.goBack();
    await clickPoint("Cost");
    await expectRuns(4, { ...bucket, status: undefined });
    await page.goBack();
    await clickPoint("Error rate");
    await expectRuns(2, { ...bucket, status: "failed" });
    await page.reload();
    await expectRuns(2, { ...bucket, status: "failed" });
    await page.getByRole("button", { name: /^Ended from/ }).click();
    await expectRuns(2, { status: "failed", ended_from: undefined, ended_until: undefined });
    await page.goBack();
    await chart(page, "Ended runs").focus();
    for (let i = 0; i < 89 - POINT; i++) await page.keyboard.press("ArrowLeft");
    await expect.poll(() => textOf(page, "Ended runs")).toContain(": runs 4, errors 2");
    await page.keyboard.press("Enter");
    await expectRuns(4, { ...bucket, status: undefined });
    await page.goBack();
    await page.getByRole("row").filter({ hasText: "chain" }).getByRole("link", { name: "2", exact: true }).click();
    await expectRuns(2, { assistant: ids.chain, status: "failed" });
  });

  it("is legible to everybody, wide and narrow, light and dark", async () => {
    const ready = (page: Page) => page.getByText("All assistants").waitFor();
    await takePictures(web, "monitoring", "/runs/monitoring?range=30d", ready);
  });
});
