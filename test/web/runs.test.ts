import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
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
    expect(await page.locator("pre").innerText()).toContain(`curl ${web.url}/runs`);
  });

  it("appear as they start and end, and one is cancelled so that its steps stay", async () => {
    const page = await web.open("/runs");
    const run = await newRun(SLOW);
    const row = rowOf(page, run);
    await row.getByText("running").waitFor();
    await page.getByRole("img", { name: /Queue: pending 0.*running 1/ }).waitFor();
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
    expect(new URL(page.url()).searchParams.get("run")).toBe(run.run_id);
    await page.reload();
    await sheet.getByText("running").waitFor();
    await sheet.getByRole("button", { name: "Cancel options" }).click();
    await page.getByRole("menuitem", { name: /Roll back/ }).click();
    await sheet.getByText("Run not found").waitFor();
    expect((await read(run)).status).toBeUndefined();
    await page.keyboard.press("Escape");
    await page.getByText("No runs match").waitFor();
    expect(new URL(page.url()).search).toBe("?status=active");
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
    await page.getByRole("radio", { name: /^Pending In all/ }).check();
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
    expect(await page.getByRole("row").count()).toBe(2);
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
    expect(await page.getByRole("row").count()).toBe(2);
    await page.getByRole("textbox", { name: "Thread" }).fill("no-such-part");
    await page.getByText("No runs match").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    expect(new URL(page.url()).search).toBe("");
  });

  it("are accessible on wide and narrow screens, in light and dark themes", async () => {
    const running = await newRun(SLOW);
    for (const body of [LATER, { ...LATER, after_seconds: 0 }]) await newRun(body);
    await takePictures(web, "runs", "/runs", (page) => page.getByText("running").last().waitFor());
    await takePictures(web, "run", `/runs?run=${running.run_id}`, (page) => page.getByText("Input").waitFor());
    await post("/runs/cancel", { status: "all" });
  });
});
