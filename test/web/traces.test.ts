import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { partsOf, run, TraceClient } from "../traces/trace-client.ts";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";
import { PIXEL, QUESTION, sendAgentTrace, sendLargeTrace, sendProject } from "./sample-traces.ts";

describeInBrowser("the pages of traces", () => {
  let web: WebTest;
  let client: TraceClient;
  beforeAll(async () => {
    web = await WebTest.start();
    client = new TraceClient(web.service);
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  const rowOf = (page: Page, name: string | RegExp) => page.getByRole("row", { name });
  const panel = (page: Page) => page.getByRole("region", { name: "Selected run" });
  const tree = (page: Page) => page.getByRole("treegrid", { name: "Runs of the trace" });
  const searchOf = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);
  /** The names of the rows of the tree, and the selected one in brackets. */
  const shown = async (page: Page) =>
    (await tree(page).locator("[aria-level]").all()).length === 0
      ? ""
      : ((await page.evaluate(`
          [...document.querySelectorAll("[role=treegrid] [aria-level]")].map((row) => {
            const name = row.querySelector(".truncate").textContent;
            return row.getAttribute("aria-selected") === "true" ? "[" + name + "]" : name;
          }).join(" ")`)) as string);

  it("begin with how to send a trace, list the projects, and lead to their traces", async () => {
    const page = await web.open("/traces");
    await page.getByText("No traces yet").waitFor();
    await page.getByText(`export LANGSMITH_ENDPOINT=${web.url}/api/v1`).waitFor();
    await expectAccessible(page);
    await sendAgentTrace(client);
    await page.reload();
    const project = rowOf(page, /support/);
    await project.waitFor();
    expect((await project.innerText()).split(/\s*\n\s*/)).toEqual(
      expect.arrayContaining(["support", "1", "0 %", "4.20 s", "834", "$0.0017"]),
    );
    await project.getByRole("link", { name: "support" }).click();
    await page.getByRole("heading", { name: "support" }).waitFor();
    await rowOf(page, /support-agent/)
      .getByRole("link")
      .click();
    await page.getByRole("heading", { name: "support-agent", level: 1 }).waitFor();
    await page.getByText(QUESTION).first().waitFor();
  });

  it("show new traces while the page is open, and filter, count and sort by the URL", async () => {
    const session = { session_name: "live" };
    await sendAgentTrace(client, session);
    const { id } = await client.session("live");
    const page = await web.open(`/traces/projects/${id}`);
    await rowOf(page, /support-agent/).waitFor();
    const cheap = run({ name: "cheap", tags: ["beta"], extra: { metadata: { tries: 5 } }, at: 10_000, ...session });
    await client.post(cheap);
    await rowOf(page, /cheap/).waitFor();
    const rows = async () => (await page.getByRole("table").getByRole("link").allInnerTexts()).join(" ");
    await expect.poll(() => rows()).toBe("cheap support-agent");

    await page.getByRole("columnheader", { name: "Cost" }).getByRole("button").click();
    await page.getByRole("columnheader", { name: "Cost" }).and(page.locator("[aria-sort=descending]")).waitFor();
    expect(searchOf(page)).toEqual({ sort: "-total_cost" });
    await expect.poll(rows).toBe("support-agent cheap");

    const matching = page.getByRole("region", { name: "Statistics" });
    const expectRows = async (query: string, names: string, count: number) => {
      await page.goto(`${web.url}/app/traces/projects/${id}?${query}`);
      await expect.poll(rows).toBe(names);
      await matching.getByText("matching").waitFor();
      await expect.poll(() => matching.locator("dd").first().innerText()).toBe(String(count));
    };
    await expectRows("type=llm", "gpt-4.1 gpt-4.1-mini", 2);
    await expectRows("type=all&status=error", "search_docs", 1);
    await expectRows("q=password+expires", "support-agent", 1);
    await expectRows("tag=beta", "cheap", 1);
    await expectRows("metadata=tries%3D5", "cheap", 1);
    await expectRows("metadata=customer", "support-agent", 1);
    await expectRows("latency=2", "support-agent", 1);
    await expectRows("tokens=800", "support-agent", 1);
    await expectRows("thread=thread-7", "support-agent", 1);
    await expectRows('name=say+"no"', "", 0);
    await page.getByText("No traces match").waitFor();
    await expectAccessible(page);

    await page.getByRole("button", { name: /^name is .*remove filter/ }).click();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByLabel("Tag", { exact: true }).fill("beta");
    await expect.poll(() => searchOf(page)).toEqual({ tag: "beta" });
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.getByRole("combobox", { name: "Runs" }).click();
    await page.getByRole("option", { name: "Tool runs" }).click();
    await expect.poll(() => searchOf(page)).toEqual({ tag: "beta", type: "tool" });
    await page.getByRole("button", { name: "Clear filters" }).click();
    await expect.poll(() => searchOf(page)).toEqual({});
    await expect.poll(rows).toBe("cheap support-agent");
  });

  it("are walked, folded and searched with the keyboard, and the URL has what is selected", async () => {
    const { root, plan, planModel, failed } = await sendAgentTrace(client, { session_name: "keys" });
    const page = await web.open(`/traces/${root.id}`);
    await panel(page).getByText(QUESTION).first().waitFor();
    await expect
      .poll(() => shown(page))
      .toBe("[support-agent] plan gpt-4.1-mini load_profile search search_docs search_docs answer gpt-4.1");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    expect(searchOf(page)).toEqual({ run: planModel.id });
    await panel(page).getByText("Plan the next step.").waitFor();
    await page.keyboard.press("ArrowLeft");
    expect(searchOf(page)).toEqual({ run: plan.id });
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => shown(page)).toBe("support-agent [plan] search search_docs search_docs answer gpt-4.1");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => shown(page)).toContain("plan [gpt-4.1-mini] load_profile");
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe("Selected run");

    // Only the outputs of the run contain the word.
    await page.getByLabel("Search in the trace").fill("language");
    await page.getByText("1 of 9 runs").waitFor();
    await expect.poll(() => shown(page)).toContain("load_profile");
    await page.getByLabel("Search in the trace").fill("");
    await page.getByText("9 runs", { exact: true }).waitFor();
    await page.keyboard.press("Escape");

    await page.keyboard.press("/");
    await page.keyboard.type("timeout");
    await page.getByText("1 of 9 runs").waitFor();
    await expect.poll(() => shown(page)).toBe("support-agent search search_docs");
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByLabel("Search in the trace").inputValue()).toBe("timeout");
    await tree(page).focus();
    await page.keyboard.press("End");
    expect(searchOf(page)).toEqual({ run: failed.id, q: "timeout" });
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Collapse the run, or go to its parent").waitFor();
    await page.keyboard.press("Escape");
    await page.reload();
    await panel(page).getByText("at search (/app/search.ts:14:9)").waitFor();
  });

  it("mark the critical path and the first token, and grow while a run is pending", async () => {
    const start_time = new Date(Date.now() - 5_000).toISOString();
    const fields = { session_name: "pending", dotted_order: undefined };
    const root = run({ name: "slow", ...fields, start_time, end_time: undefined, outputs: undefined });
    const early = run({ name: "early", ...fields, start_time, trace_id: root.id, parent_run_id: root.id });
    await client.post(root, { ...early, end_time: new Date(Date.parse(start_time) + 500).toISOString() });
    const page = await web.open(`/traces/${root.id}`);
    const barOf = (name: string) => rowOf(page, new RegExp(name)).locator("[data-bar]");
    const widthOf = async (name: string) => (await barOf(name).boundingBox())?.width ?? 0;
    await barOf("early").waitFor();
    const before = await widthOf("early");
    await expect.poll(() => rowOf(page, /slow/).innerText()).toContain("pending");
    await expect.poll(() => widthOf("early")).toBeLessThan(before);
    const late = run({ name: "late", ...fields, trace_id: root.id, parent_run_id: root.id });
    const events = [{ name: "new_token", time: new Date(Date.parse(start_time) + 1_000).toISOString() }];
    await client.post({ ...late, run_type: "llm", events, start_time, end_time: new Date().toISOString() });
    await rowOf(page, /late/).getByTitle("First token after 1.00 s").waitFor();
    await client.json("PATCH", `/runs/${root.id}`, { end_time: new Date().toISOString(), outputs: { answer: "done" } });
    await panel(page).getByText("done").waitFor();
    await page.getByRole("heading", { name: "slow", level: 1 }).waitFor();
    await expect.poll(() => rowOf(page, /late/).innerText()).toContain("On the critical path");
    expect(await rowOf(page, /early/).innerText()).not.toContain("On the critical path");
  });

  it("draw only the visible rows of a large trace, folded below the second level", async () => {
    const root = await sendLargeTrace(client, 1_000);
    const page = await web.open(`/traces/${root.id}`);
    await page.getByText("1,001 runs").waitFor();
    await expect.poll(() => tree(page).getAttribute("aria-rowcount")).toBe("502");
    await page.getByRole("button", { name: "Expand all" }).click();
    await expect.poll(() => tree(page).getAttribute("aria-rowcount")).toBe("1002");
    await expect.poll(() => tree(page).getByRole("row").count()).toBeLessThan(60);
    await tree(page).focus();
    await page.keyboard.press("End");
    await rowOf(page, /^(Collapse|Expand)? ?tool/i)
      .last()
      .waitFor();
    await expect.poll(() => tree(page).getByRole("row").count()).toBeLessThan(60);
    await page.getByRole("button", { name: "Collapse all", exact: true }).click();
    await expect.poll(() => tree(page).getAttribute("aria-rowcount")).toBe("252");
  });

  it("show a run with its messages, attachments, details and JSON, and copy it as a command", async () => {
    const { root, answerModel } = await sendAgentTrace(client, { session_name: "details" });
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
    await client.sendParts({
      ...partsOf("patch", [{ id: answerModel.id }]),
      [`attachment.${answerModel.id}.pixel`]: [PIXEL, "image/png"],
      [`attachment.${answerModel.id}.drawing`]: [svg, "image/svg+xml"],
    });
    const page = await web.open(`/traces/${root.id}?run=${answerModel.id}`);
    const run = panel(page);
    await run.locator("strong", { hasText: "Settings › Security" }).waitFor();
    await expect.poll(() => run.getByRole("list", { name: "Messages" }).first().getByRole("listitem").count()).toBe(3);
    await run.getByText("search_docs").click();
    await run.getByText("Settings › Security › Reset password").waitFor();
    await run.locator("strong", { hasText: "Settings › Security" }).waitFor();
    await run.getByRole("img", { name: "pixel" }).waitFor();
    expect(await run.getByRole("img", { name: "drawing" }).count()).toBe(0);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      run.getByRole("listitem").filter({ hasText: "image/svg+xml" }).getByRole("link", { name: "Download" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("drawing");
    await expectAccessible(page);

    await run.getByRole("tab", { name: "Details" }).click();
    await run.getByText("temperature:").waitFor();
    await run.getByText("+480 ms").waitFor();
    await run.getByRole("tab", { name: "JSON" }).click();
    await run.getByRole("button", { name: "Copy JSON" }).click();
    expect(JSON.parse((await page.evaluate("navigator.clipboard.readText()")) as string).id).toBe(answerModel.id);
    await run.getByRole("button", { name: "Actions for the run" }).click();
    await page.getByRole("menuitem", { name: "Copy as curl" }).click();
    await page.getByText("Command copied").waitFor();
    await expect
      .poll(() => page.evaluate("navigator.clipboard.readText()"))
      .toBe(`curl -s ${web.url}/api/v1/runs/${answerModel.id}`);
  });

  it("take feedback on a run, and show it with its statistics", async () => {
    const { root } = await sendAgentTrace(client, { session_name: "feedback" });
    const page = await web.open(`/traces/${root.id}?tab=feedback`);
    await page.getByText("No feedback yet").waitFor();
    await page.getByRole("button", { name: "Add feedback" }).click();
    await page.getByLabel("Key").fill("helpful");
    await page.getByLabel("Score").fill("0.5");
    await page.getByLabel("Comment").fill("Half of it.");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("tab", { name: "Feedback (1)" }).waitFor();
    await page.getByText("Half of it.").waitFor();
    expect((await client.read(root.id)).feedback_stats.helpful).toMatchObject({ n: 1, avg: 0.5 });
    const { id } = await client.session("feedback");
    await page.goto(`${web.url}/app/traces/projects/${id}`);
    await rowOf(page, /helpful 0.500/).waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Delete helpful" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No feedback yet").waitFor();
  });

  it("are priced again with the current prices", async () => {
    const extra = { metadata: { ls_model_name: "house-1", usage_metadata: { input_tokens: 1_000, output_tokens: 0 } } };
    await client.post(run({ name: "call", run_type: "llm", session_name: "prices", extra }));
    await client.json("POST", "/api/v1/model-price-map", {
      name: "house",
      match_pattern: "^house-",
      prompt_cost: 0.0005,
      completion_cost: 0,
    });
    const { id } = await client.session("prices");
    const page = await web.open(`/traces/projects/${id}`);
    await rowOf(page, /call/).waitFor();
    await page.getByRole("button", { name: "Actions for prices" }).click();
    await page.getByRole("menuitem", { name: "Recompute costs" }).click();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Recompute", exact: true }).click();
    await page.getByText("Costs of 1 run changed").waitFor();
    await rowOf(page, /call.*\$0.5/).waitFor();
  });

  it("show hostile content as text, without scripts and without requests to other hosts", async () => {
    const html = '<img src="https://evil.test/a.png" onerror="window.hit = 1"><script>window.hit = 1</script>';
    const content = `${html}\n\n![a](https://evil.test/b.png) [click](javascript:window.hit=1)`;
    const root = run({
      name: html,
      session_name: "hostile",
      inputs: {
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://evil.test/c.png" } }] }],
        text: content,
      },
      outputs: { role: "assistant", content },
      error: html,
      tags: [html],
      extra: { metadata: { [html]: html } },
    });
    await client.sendParts({
      ...partsOf("post", [root]),
      [`attachment.${root.id}.page`]: [Buffer.from(html), "text/html"],
    });
    const page = await web.open(`/traces/${root.id}`);
    await panel(page).getByText("click").first().waitFor();
    await panel(page).getByText("text/html").waitFor();
    for (const tab of ["Details", "JSON"]) await panel(page).getByRole("tab", { name: tab }).click();
    await expect
      .poll(() => page.locator("img").evaluateAll((images) => images.map((image) => image.getAttribute("src"))))
      .toEqual(["/app/icon.svg"]);
    expect(await page.locator("a[href^='javascript']").count()).toBe(0);
    expect(await page.evaluate("window.hit")).toBe(undefined);
  });

  it("say what failed, and read again", async () => {
    const page = await web.open("/traces/7f7b1b1e-0000-4000-8000-000000000000", { refused: [404] });
    await page.getByRole("alert").getByText("Trace not found").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("alert").waitFor();
    await page.goto(`${web.url}/app/traces/projects/7f7b1b1e-0000-4000-8000-000000000000`);
    await page.getByRole("alert").getByText("Session not found").waitFor();
  });

  it("are accessible on both sizes and in both themes", async () => {
    const { root, answerModel, failed } = await sendAgentTrace(client, { session_name: "support-chat" });
    await sendProject(client, "support-chat", 60);
    await client.json("POST", "/feedback", { run_id: answerModel.id, key: "helpful", score: 1, comment: "Complete." });
    const { id } = await client.session("support-chat");
    await takePictures(web, "trace-projects", "/traces", (page) => rowOf(page, /support-chat/).waitFor());
    await takePictures(web, "trace-project", `/traces/projects/${id}`, async (page) => {
      await rowOf(page, /support-agent/)
        .first()
        .waitFor();
      await page.getByText("latency p50").waitFor();
    });
    const at = `/traces/${root.id}`;
    await takePictures(web, "trace", `${at}?run=${answerModel.id}`, (page) =>
      page.getByText("The link expires after").first().waitFor(),
    );
    await takePictures(web, "trace-tree", at, (page) => rowOf(page, /gpt-4.1 /).waitFor());
    await takePictures(web, "trace-error", `${at}?run=${failed.id}`, (page) => page.getByText("at search").waitFor());
    await takePictures(web, "trace-details", `${at}?run=${answerModel.id}&tab=details`, (page) =>
      page.getByText("Invocation parameters").waitFor(),
    );
  });
});
