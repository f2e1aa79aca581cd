import { performance } from "node:perf_hooks";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

/** How long the example agents wait before each token or step while they are looked at, in ms. */
const SLOW_MS = 300;
/** As long as the test: only a cancel ends it. */
const ENDLESS_MS = 60_000;

/** Each picture takes a second or more. */
const PICTURES_MS = 180_000;

describeInBrowser("threads", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start();
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  const call = async (method: string, path: string, body?: unknown): Promise<any> => {
    const answer = await web.service.request(method, path, body);
    expect([method, path, answer.status < 300, answer.text]).toEqual([method, path, true, answer.text]);
    return answer.body;
  };
  const newThread = async (metadata = {}): Promise<string> => (await call("POST", "/threads", { metadata })).thread_id;
  const say = (content: string) => ({ messages: [{ role: "user", content }] });
  const run = (thread_id: string, body: object, how = "/wait") =>
    call("POST", `/threads/${thread_id}/runs${how}`, { assistant_id: "support_desk", ...body });
  const waiting = (delay_ms: number) => ({ config: { configurable: { delay_ms } } });
  const runsOf = async (thread_id: string): Promise<{ status: string }[]> => call("GET", `/threads/${thread_id}/runs`);
  const assistantOf = async (graph_id: string): Promise<string> =>
    (await call("POST", "/assistants/search", { graph_id }))[0].assistant_id;

  const conversation = (page: Page) => page.getByRole("list", { name: "Conversation" });
  const said = (page: Page, text: string) => conversation(page).getByText(text).waitFor();
  const question = (page: Page) => page.getByRole("region", { name: "Needs your input" });
  const send = async (page: Page, text: string) => {
    await page.getByRole("textbox", { name: "Message" }).fill(text);
    await page.keyboard.press("Enter");
  };

  it("begin with a message, stop for a person, and continue to the end when it is approved", async () => {
    const page = await web.open("/threads/new");
    const agents = page.getByRole("region", { name: "Agents" });
    await agents.getByRole("link", { name: /support_desk/ }).waitFor();
    expect(await page.getByRole("textbox").count()).toBe(0);
    await expectAccessible(page);
    await agents.getByRole("link", { name: /support_desk/ }).click();
    await page.getByText("Try “Refund order 1042”").waitFor();
    await send(page, "Refund order 1042");
    await question(page).getByText("Refund $129.00 for order 1042 (walking boots)?").waitFor();
    await page.getByText("Needs your input", { exact: true }).waitFor();
    await expectAccessible(page);
    const call = conversation(page).locator("details", { hasText: "look_up_order" });
    await expect.poll(() => call.locator("summary").innerText()).toMatch(/order_id: 1042\s*\d+ ms\s*success/i);
    expect(await call.getByText("walking boots").isVisible()).toBe(false);
    await call.locator("summary").click();
    await call.getByText("walking boots").waitFor();
    await question(page).getByRole("button", { name: "Approve" }).click();
    await said(page, "Done: $129.00 for order 1042 is on its way back to you.");
    await page.getByRole("heading", { name: "Refund order 1042" }).waitFor();
    await page.getByText("idle").waitFor();
    expect(await question(page).count()).toBe(0);
  });

  it("keep the focus at the input of the thread when a question comes and goes", async () => {
    const page = await web.open(`/threads/new?assistant=${await assistantOf("support_desk")}`);
    await send(page, "Refund order 1042");
    const approve = question(page).getByRole("button", { name: "Approve" });
    await approve.waitFor();
    const isFocused = async (control: Locator) => (await control.and(page.locator(":focus")).count()) === 1;
    for (let tabs = 0; tabs < 6 && !(await isFocused(approve)); tabs++) await page.keyboard.press("Tab");
    await expect.poll(() => isFocused(approve)).toBe(true);
    await page.keyboard.press("Enter");
    await said(page, "Done: $129.00 for order 1042 is on its way back to you.");
    await page.keyboard.press("Tab");
    await expect.poll(() => isFocused(page.getByRole("textbox", { name: "Message" }))).toBe(true);
  });

  it("name the node in which a run failed, and retry it", async () => {
    const thread_id = await newThread();
    await run(thread_id, { assistant_id: "research", input: { question: 7 } });
    const page = await web.open(`/threads/${thread_id}`);
    const failed = page.getByRole("region", { name: "Failed run" });
    await failed.getByText("Failed in plan.").waitFor();
    await expectAccessible(page);
    await failed.getByRole("button", { name: "Retry" }).click();
    await expect.poll(async () => (await runsOf(thread_id)).map(({ status }) => status)).toEqual(["error", "error"]);
    await failed.waitFor();
  });

  it("take an answer that was edited, a refusal with its reason, and one written as JSON", async () => {
    const answered = async (answer: (page: Page) => Promise<void>) => {
      const thread_id = await newThread();
      await run(thread_id, { input: say("Refund order 1043") });
      const page = await web.open(`/threads/${thread_id}`);
      await answer(page);
      return page;
    };
    const edited = await answered(async (page) => {
      await question(page).getByRole("button", { name: "Edit" }).click();
      await question(page).getByLabel("amount").fill("20.5");
      await question(page).getByRole("button", { name: "Approve with changes" }).click();
    });
    await said(edited, "Done: $20.50 for order 1043");
    const refused = await answered(async (page) => {
      await question(page).getByRole("button", { name: "Reject" }).click();
      await question(page).getByLabel("Reason").fill("It was worn.");
      await question(page).getByRole("button", { name: "Reject" }).click();
    });
    await said(refused, "was not approved. The reason: It was worn.");
    const refund = conversation(refused).locator("summary", { hasText: "refund_order" });
    await expect.poll(() => refund.innerText()).toMatch(/rejected/i);
    expect(await refund.innerText()).not.toMatch(/success/i);
    const thread = new URL(refused.url()).pathname.replace("/app", "");
    const { values } = (await call("GET", `${thread}/state`)) as { values: { messages: object[] } };
    expect(values.messages).toContainEqual(expect.objectContaining({ type: "tool", status: "error" }));
    const raw = await answered(async (page) => {
      await question(page).getByRole("button", { name: "Raw JSON" }).click();
      const text = question(page).getByLabel("Response (JSON)");
      await text.fill('{"decision": "approve"');
      await question(page).getByText("Invalid JSON").waitFor();
      await text.fill('{"decision": "approve"}');
      await question(page).getByRole("button", { name: "Submit JSON" }).click();
    });
    await said(raw, "Done: $89.50 for order 1043");
  });

  it("never approve the unedited value while an edit is open, and let the edit be dropped", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Refund order 1043") });
    const page = await web.open(`/threads/${thread_id}`);
    const edit = question(page).getByRole("button", { name: "Edit" });
    const amount = question(page).getByLabel("amount");
    const approve = question(page).getByRole("button", { name: /^Approve/ });
    await edit.click();
    await page.keyboard.press("Escape");
    await amount.waitFor({ state: "detached" });
    await edit.click();
    await question(page).getByRole("button", { name: "Cancel" }).click();
    await amount.waitFor({ state: "detached" });
    await edit.click();
    await amount.fill("20.5");
    await expect.poll(() => approve.allInnerTexts()).toEqual(["Approve with changes"]);
    await expectAccessible(page);
    await approve.click();
    await said(page, "Done: $20.50 for order 1043");
  });

  it("warn before a message drops an open question, and offer the question again in the past", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Refund order 1043") });
    const page = await web.open(`/threads/${thread_id}`);
    await question(page).waitFor();
    expect(await page.getByRole("textbox", { name: "Message" }).count()).toBe(0);
    await page.getByRole("button", { name: "Send a message instead" }).click();
    await page.getByText("Your message skips the open question").waitFor();
    await expectAccessible(page);
    await page.getByRole("textbox", { name: "Message" }).fill("Where is order 1042?");
    // The history does not arrive before the click, so that the step is still the first one of the list.
    const clicked = Promise.withResolvers<void>();
    await page.route(/\/history$/, async (route) => {
      await clicked.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Send and skip the question" }).click();
    await said(page, "Order 1042 (walking boots) is shipped");
    await conversation(page).getByText("skipped").waitFor();
    expect(await conversation(page).getByText("pending").count()).toBe(0);
    await page
      .getByRole("list", { name: "History" })
      .getByRole("button", { name: /interrupted in/ })
      .click();
    clicked.resolve();
    await question(page).getByRole("button", { name: "Approve" }).click();
    await said(page, "Done: $89.50 for order 1043");
    expect(await conversation(page).getByText("1042").count()).toBe(0);
  });

  it("show a run that is already running from its first token, and stop it with its completed steps", async () => {
    const thread_id = await newThread();
    const { run_id } = await run(
      thread_id,
      { input: say("Refund order 1042"), ...waiting(SLOW_MS), stream_mode: "messages-tuple" },
      "",
    );
    const page = await web.open(`/threads/${thread_id}?side=graph`);
    await said(page, "Let me look up");
    // The node that works lights up in the drawing.
    await page
      .locator('[data-node="agent"][data-state="running"]')
      .waitFor({ timeout: 1_000 })
      .catch(() => undefined);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByText("Progress").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Cancel", exact: true }).waitFor({ state: "detached" });
    expect(await call("GET", `/threads/${thread_id}/runs/${run_id}`)).toMatchObject({ status: "interrupted" });
    await page.getByRole("radio", { name: "Runs" }).click();
    await page.getByRole("list", { name: "Runs" }).getByText("interrupted").waitFor();
    // What it has done is kept, so another run may go on from there.
    await page.getByRole("region", { name: "Paused run" }).getByText("agent").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Continue" }).click();
    await question(page).getByText("Refund $129.00").waitFor();
  });

  it("undo a run when that is requested", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Hello") });
    // A request for the run may be on its way when the run is deleted.
    const page = await web.open(`/threads/${thread_id}`, { refused: [404] });
    await said(page, "Ask me");
    await run(thread_id, { input: say("Where is order 1042?"), ...waiting(ENDLESS_MS) }, "");
    await said(page, "Where is order 1042?");
    await page.getByRole("button", { name: "Cancel options" }).click();
    await page.getByText("then deletes the run and all its steps").waitFor();
    await expectAccessible(page);
    await page.getByRole("menuitem", { name: "Roll back" }).click();
    await conversation(page).getByText("Where is order 1042?").waitFor({ state: "detached" });
    expect((await runsOf(thread_id)).length).toBe(1);
    await said(page, "Ask me");
  });

  it("cancel several runs at once", async () => {
    const thread_id = await newThread();
    for (const number of [1, 2, 3, 4])
      await run(thread_id, { input: say(`Hello ${number}`), ...waiting(ENDLESS_MS) }, "");
    const page = await web.open(`/threads/${thread_id}?side=runs`);
    const marks = page.getByRole("checkbox");
    await marks.nth(3).waitFor();
    await expectAccessible(page);
    await marks.nth(0).check();
    await marks.nth(1).check();
    await page.getByRole("button", { name: "Cancel 2 selected" }).click();
    await page.getByRole("list", { name: "Runs" }).getByText("interrupted").nth(1).waitFor();
    await page.getByRole("button", { name: /^Cancel (all 2|run)$/ }).click();
    await page.getByText("active runs").waitFor({ state: "detached" });
    expect((await runsOf(thread_id)).filter(({ status }) => status === "interrupted").length).toBeGreaterThanOrEqual(3);
  });

  it("lead from a run to its input and output", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Hello") });
    const page = await web.open(`/threads/${thread_id}?side=runs`);
    await page.getByRole("list", { name: "Runs" }).getByRole("link", { name: "Open run" }).click();
    const sheet = page.getByRole("dialog", { name: "support_desk" });
    for (const name of ["Input", "Final state"]) await sheet.getByRole("heading", { name }).waitFor();
  });

  it("go back in their history, and continue differently from there", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Where is order 1042?") });
    const page = await web.open(`/threads/${thread_id}`);
    const history = page.getByRole("list", { name: "History" });
    await history.getByRole("button", { name: /^\d+ ?tools/ }).click();
    // All steps change the messages, and all are of one run.
    expect(await history.getByText(/changed messages/).count()).toBe(0);
    await expect.poll(() => history.locator("time").count()).toBe(1);
    await page.getByText("You are viewing a past state").waitFor();
    await expectAccessible(page);
    await expect.poll(() => new URL(page.url()).searchParams.get("checkpoint")).toBeTruthy();
    expect(await conversation(page).getByText("is shipped").count()).toBe(0);
    // The keys of the history: one step further down, and back.
    await page.keyboard.press("j");
    await conversation(page).getByText("pending").waitFor();
    await page.keyboard.press("k");
    await page.reload();
    await history.getByRole("button", { name: "Run from here" }).click();
    await said(page, "is shipped");
    await history.getByText("Branch 2 of 2").waitFor();
    expect((await runsOf(thread_id)).length).toBe(2);
    await history
      .getByRole("button", { name: /run started/ })
      .first()
      .click();
    await send(page, "Where is order 1044?");
    await said(page, "Order 1044 (camping stove)");
    expect(await conversation(page).getByText("1042").count()).toBe(0);
  });

  it("show their forks as branches, at the message and in the history, all of it in the address", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Where is order 1042?") });
    const first = (await call("POST", `/threads/${thread_id}/history`, {})) as {
      checkpoint: { checkpoint_id: string };
    }[];
    const checkpoint_id = first.at(-1)?.checkpoint.checkpoint_id;
    for (const order of [1043, 1044]) await run(thread_id, { input: say(`Where is order ${order}?`), checkpoint_id });
    const page = await web.open(`/threads/${thread_id}`);
    await said(page, "Order 1044 (camping stove)");
    const history = page.getByRole("list", { name: "History" });
    const switcher = conversation(page).getByRole("group", { name: "Branches" });
    await switcher.getByText("Branch 3 of 3").waitFor();
    await history.getByText("Branch 3 of 3").waitFor();
    await expect.poll(() => switcher.getByRole("button", { name: "Next branch" }).isDisabled()).toBe(true);
    const steps = await history.getByRole("listitem").count();
    await expect.poll(() => conversation(page).innerText()).toMatch(/^Branch 3 of 3/);

    await switcher.getByRole("button", { name: "Previous branch" }).click();
    await said(page, "Order 1043 (rain jacket)");
    await history.getByRole("button", { name: "Previous branch" }).click();
    await said(page, "Order 1042 (walking boots) is shipped");
    await page.getByText("You are viewing an older branch").waitFor();
    expect(await conversation(page).getByText("1044").count()).toBe(0);
    await expect.poll(() => new URL(page.url()).searchParams.get("branch")).toBe(first[0]?.checkpoint.checkpoint_id);
    await expectAccessible(page);
    // Also a step of the older branch, and one that all branches share.
    await history
      .getByRole("button", { name: /run started/ })
      .last()
      .click();
    await page.getByText("You are viewing a past state").waitFor();
    await page.reload();
    await history.getByText("Branch 1 of 3").waitFor();
    await history.getByRole("button").first().click();
    await said(page, "Order 1042 (walking boots) is shipped");

    await send(page, "And order 1044?");
    await said(page, "Order 1044 (camping stove)");
    await said(page, "Order 1042 (walking boots) is shipped");
    await history.getByText("Branch 1 of 3").waitFor();
    await expect.poll(() => history.getByRole("listitem").count()).toBeGreaterThan(steps);
    await expect.poll(() => new URL(page.url()).searchParams.get("branch")).toBeNull();
  });

  it("run from a state that was edited", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Where is order 1042?") });
    const page = await web.open(`/threads/${thread_id}`);
    const history = page.getByRole("list", { name: "History" });
    // The state before the first node, with the question only.
    await history
      .getByRole("button", { name: /^\d+ ?input/ })
      .last()
      .click();
    await history.getByRole("button", { name: "Edit state…" }).click();
    const dialog = page.getByRole("dialog", { name: "Edit state" });
    const text = dialog.getByLabel("State (JSON)");
    await dialog.getByRole("button", { name: "Save and run from here" }).click();
    await dialog.getByText("Change a value of the state first.").waitFor();
    await expectAccessible(page);
    await text.fill((await text.inputValue()).replace("1042", "1044"));
    await dialog.getByRole("button", { name: "Save and run from here" }).click();
    await said(page, "Order 1044 (camping stove)");
    await dialog.waitFor({ state: "detached" });
    expect(await conversation(page).getByText("1042").count()).toBe(0);
  });

  it("pause before the nodes that are selected in the graph", async () => {
    const thread_id = await newThread();
    const page = await web.open(`/threads/${thread_id}?side=graph&assistant=${await assistantOf("support_desk")}`);
    const node = page.getByRole("button", { name: "Pause before tools" });
    await node.click();
    await page.waitForURL(/pause=tools/);
    await expectAccessible(page);
    await send(page, "Where is order 1042?");
    const paused = page.getByRole("region", { name: "Paused run" });
    await paused.getByText("tools").waitFor();
    await node.click();
    await paused.getByRole("button", { name: "Continue" }).click();
    await said(page, "Order 1042 (walking boots) is shipped");
  });

  it("show the output of a run that ended between two polls", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Where is order 1042?") });
    const page = await web.open(`/threads/${thread_id}`);
    await said(page, "is shipped");
    // The page reads the runs once this one has ended.
    const ended = Promise.withResolvers<void>();
    await page.route(/\/runs\?/, async (route) => {
      await ended.promise;
      await route.continue();
    });
    await run(thread_id, { input: say("Where is order 1044?") });
    ended.resolve();
    await conversation(page).getByText("Order 1044 (camping stove)").waitFor({ timeout: 8_000 });
  });

  it("keep what is typed before the schema is known, over a reload, and while a question is open", async () => {
    const page = await web.open("/settings");
    const held = Promise.withResolvers<void>();
    await page.route(/\/schemas$/, async (route) => {
      await held.promise;
      await route.continue();
    });
    const slow = await call("POST", "/assistants", { graph_id: "support_desk", ...waiting(SLOW_MS / 3) });
    const message = page.getByRole("textbox", { name: "Message" });
    const sending = page.getByRole("button", { name: "Send", exact: true });
    await page.goto(`${web.url}/app/threads/new?assistant=${slow.assistant_id}`);
    await message.fill("Refund order 1042");
    await expect.poll(() => sending.isDisabled()).toBe(true);
    held.resolve();
    await page.getByRole("radio", { name: "Form" }).waitFor();
    await expect.poll(() => message.inputValue()).toBe("Refund order 1042");
    await page.reload();
    await page.getByRole("radio", { name: "Form" }).waitFor();
    await expect.poll(() => message.inputValue()).toBe("Refund order 1042");
    await sending.click();
    await said(page, "Let me look up");
    // Written while the run is active, which ends with a question in place of the input.
    await message.fill("And cancel order 1043");
    await question(page).getByText("Refund $129.00").waitFor();
    await question(page).getByRole("button", { name: "Approve" }).click();
    await said(page, "Done: $129.00 for order 1042 is on its way back to you.");
    await expect.poll(() => message.inputValue()).toBe("And cancel order 1043");
    // What was sent is no draft.
    await page.goto(`${web.url}/app/threads/new?assistant=${slow.assistant_id}`);
    await page.getByRole("radio", { name: "Form" }).waitFor();
    await expect.poll(() => message.inputValue()).toBe("");
  });

  it("take a message that was typed before the schema was known as the first text of a form", async () => {
    const page = await web.open("/settings");
    const held = Promise.withResolvers<void>();
    await page.route(/\/schemas$/, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.goto(`${web.url}/app/threads/new?assistant=${await assistantOf("research")}`);
    await page.getByRole("textbox", { name: "Message" }).fill("How do bees find food?");
    held.resolve();
    await page.getByLabel("question").waitFor();
    await expect.poll(() => page.getByLabel("question").inputValue()).toBe("How do bees find food?");
  });

  it("show a tool result without a status as returned, not as a success", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Hello") });
    const tool_calls = ["weather", "tides"].map((name) => ({ id: name, name, args: {} }));
    const result = { type: "tool", tool_call_id: "weather", content: "sunny" };
    const failure = { type: "tool", tool_call_id: "tides", content: "no such town", status: "error" };
    const values = { messages: [{ type: "ai", content: "", tool_calls }, result, failure] };
    await call("POST", `/threads/${thread_id}/state`, { values });
    const page = await web.open(`/threads/${thread_id}`);
    const line = conversation(page).locator("summary", { hasText: "weather" });
    await line.getByText("Returned").waitFor();
    expect(await line.innerText()).not.toMatch(/success/i);
    await conversation(page).locator("summary", { hasText: "tides" }).getByText("Failed").waitFor();
  });

  it("wrap words without end, on a phone, too", async () => {
    const thread_id = await newThread();
    const endless = "x".repeat(400);
    await run(thread_id, { input: say(`Hello ${endless}`) });
    await call("POST", `/threads/${thread_id}/state`, {
      values: { messages: [{ type: "ai", content: `The **token** is ${endless}` }] },
    });
    const page = await web.open(`/threads/${thread_id}`, { narrow: true });
    // Before the Markdown, its plain text is shown.
    await conversation(page).locator("strong", { hasText: "token" }).waitFor();
    const beyond = await conversation(page).evaluate(
      (list) => [list, ...list.querySelectorAll("*")].filter((each) => each.getBoundingClientRect().right > 390).length,
    );
    expect(beyond).toBe(0);
  });

  it("never show a step as a future one, even when the server's clock is ahead", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Hello") });
    const page = await web.open("/settings");
    await page.addInitScript(SLOW_CLOCK);
    await page.goto(`${web.url}/app/threads/${thread_id}`);
    const times = page.getByRole("list", { name: "History" }).getByRole("time");
    await times.first().waitFor();
    expect([...new Set(await times.allInnerTexts())]).toEqual(["just now"]);
  });

  it("show their state as a tree, which a key opens", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Hello") });
    const page = await web.open(`/threads/${thread_id}`);
    await said(page, "Ask me");
    await page.keyboard.press("v");
    await page.getByText("metadata:").waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get("view")).toBe("state");
    await expectAccessible(page);
    await page.keyboard.press("v");
    await said(page, "Ask me");
  });

  it("of a graph without messages have a form for the input, and show the active nodes", async () => {
    const page = await web.open(`/threads/new?assistant=${await assistantOf("research")}`);
    const input = page.getByRole("form", { name: "Input" });
    await page.getByLabel("question", { exact: true }).waitFor();
    await page.locator("textarea:focus").waitFor();
    // What the graph works out by itself is not asked for.
    await expect.poll(() => input.getByRole("textbox").count()).toBe(1);
    await page.getByRole("radio", { name: "JSON" }).click();
    await page.getByLabel("Input (JSON)").fill('{"question": ');
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Invalid JSON").waitFor();
    await page.getByRole("radio", { name: "Form" }).click();
    await page.getByLabel("question").fill("How do bees find food?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("main").getByRole("heading", { name: "How do bees find food?" }).waitFor();
    await page.getByRole("banner").getByRole("heading", { name: "How do bees find food?" }).waitFor();
    // The form has made room for what was found.
    expect(await page.getByLabel("question").count()).toBe(0);
    await page.getByRole("button", { name: "Run again…" }).click();
    await page.getByLabel("question").waitFor();
    await page.getByRole("radio", { name: "Graph" }).click();
    await page.locator("[data-node=study]").waitFor();
    const steps = page.getByRole("list", { name: "History" });
    await page.getByRole("radio", { name: "History" }).click();
    await steps.getByText(/study × \d/).waitFor();
  });

  it("light up the node that works in the drawing", async () => {
    const thread_id = await newThread();
    const assistant = await call("POST", "/assistants", { graph_id: "research", ...waiting(2 * SLOW_MS) });
    const page = await web.open(`/threads/${thread_id}?side=graph&assistant=${assistant.assistant_id}`);
    await page.locator("[data-node=study]").waitFor();
    await page.getByLabel("question").fill("How do bees find food?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator("[data-node=study][data-state=running]").waitFor();
    await page.locator("[data-node=write][data-state=running]").waitFor();
    await page.getByRole("main").getByRole("heading", { name: "How do bees find food?" }).waitFor();
  });

  it("show the nodes and messages of a run of another client, which streams neither tasks nor states", async () => {
    const thread_id = await newThread();
    const page = await web.open(`/threads/${thread_id}?side=graph`);
    await page.getByText("No messages yet").waitFor();
    const { run_id } = await run(
      thread_id,
      { assistant_id: "research", input: { question: "How do bees find food?" }, ...waiting(ENDLESS_MS) },
      "",
    );
    await page.locator("[data-node=study][data-state=running]").waitFor();
    await page
      .getByRole("status", { name: "Progress" })
      .getByText(/^Running study/)
      .waitFor();
    await call("POST", `/threads/${thread_id}/runs/${run_id}/cancel?wait=1`);
    const other_id = await newThread();
    await page.goto(`${web.url}/app/threads/${other_id}`);
    await page.getByText("No messages yet").waitFor();
    const asked = { input: say("Where is order 1042?"), ...waiting(SLOW_MS), stream_mode: "messages-tuple" };
    await run(other_id, asked, "");
    const lookUp = conversation(page).locator("details", { hasText: "look_up_order" });
    await lookUp.getByText("success").waitFor();
    await expect.poll(() => lookUp.count()).toBe(1);
    await said(page, "Order 1042 (walking boots) is shipped");
  });

  it("show why a run failed", async () => {
    const thread_id = await newThread();
    await run(thread_id, { assistant_id: "research", input: { question: "" } });
    const page = await web.open(`/threads/${thread_id}`);
    await page.getByRole("alert").getByText("The input needs a question").waitFor();
    expect(await page.getByText("No messages yet").count()).toBe(0);
    const other_id = await newThread();
    await run(other_id, { assistant_id: "profile", input: {} });
    await page.goto(`${web.url}/app/threads/${other_id}`);
    await page.getByRole("alert").getByRole("link", { name: "Connections" }).click();
    await page.getByRole("heading", { name: "Connections" }).waitFor();
  });

  it("show their runs even if their state cannot be read", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Where is order 1044?") });
    const page = await web.open("", { refused: [409] });
    await page.route("**/threads/*/state", (route) =>
      route.fulfill({ status: 409, json: { detail: "another language" } }),
    );
    await page.goto(`${web.url}/app/threads/${thread_id}`);
    await page.getByRole("alert").getByText("another language").waitFor();
    await page
      .getByRole("region", { name: "Runs of the thread" })
      .getByRole("link", { name: /^Open run/ })
      .click();
    await page.getByRole("dialog", { name: "support_desk" }).waitFor();
  });

  it("resume a stream that broke, without missing events", async () => {
    const thread_id = await newThread();
    const page = await web.open(`/threads/${thread_id}`, { loses: true });
    await page.getByText("No messages yet").waitFor();
    await run(
      thread_id,
      { input: say("Where is order 1042?"), ...waiting(SLOW_MS), stream_mode: ["messages-tuple", "values"] },
      "",
    );
    await said(page, "Let me");
    await page.context().setOffline(true);
    await page.context().setOffline(false);
    await said(page, "Order 1042 (walking boots) is shipped. It should arrive on Thursday.");
    await expect.poll(() => conversation(page).getByRole("listitem").count()).toBe(3);
  });

  it("follow their events again as soon as the network is back, after the page has given up", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Where is order 1042?") });
    const page = await web.open("/settings", { loses: true });
    await page.addInitScript(SHORT_WAITS);
    let attempts = 0;
    let isDown = true;
    await page.route(/\/threads\/[^/]+\/stream/, async (route) => {
      attempts++;
      await (isDown ? route.abort("internetdisconnected") : route.continue());
    });
    await page.goto(`${web.url}/app/threads/${thread_id}`);
    await said(page, "is shipped");
    await expect.poll(() => attempts).toBe(ATTEMPTS);
    isDown = false;
    await page.context().setOffline(true);
    await page.context().setOffline(false);
    await expect.poll(() => attempts, { timeout: 10_000 }).toBe(ATTEMPTS + 1);
    await run(thread_id, { input: say("Where is order 1044?") });
    await conversation(page).getByText("Order 1044 (camping stove)").waitFor({ timeout: 8_000 });
  });

  it("are found by words, status and metadata, with all filters in the address", async () => {
    const thread_id = await newThread({ customer: 7 });
    await run(thread_id, { input: say("Tell me a quokka joke") });
    await newThread({ customer: 8 });
    const page = await web.open("/threads");
    const rows = page.getByRole("table").getByRole("row");
    await page.getByLabel("Search content or ID").fill("QUOKKA");
    await page.waitForURL(/q=QUOKKA/);
    await page.getByRole("row", { name: /quokka joke/ }).waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByLabel("Search content or ID").fill("");
    await page.getByRole("textbox", { name: "Metadata" }).fill("customer=7");
    await page.waitForURL(/metadata=customer/);
    await page.getByRole("combobox", { name: "Status" }).click();
    await page.getByRole("option", { name: "idle" }).click();
    await page.waitForURL(/status=idle/);
    await page.reload();
    await page.getByRole("row", { name: /quokka joke/ }).waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByRole("textbox", { name: "Metadata" }).fill("customer");
    await page.getByText("Use key=value").waitFor();
    await page.getByRole("textbox", { name: "Metadata" }).fill("customer=nobody");
    await page.getByText("No threads match").waitFor();
    await newThread({ name: "Import of Monday", source: "crm" });
    await page.getByRole("textbox", { name: "Metadata" }).fill("source=crm");
    const named = page.getByRole("row", { name: /Import of Monday/ });
    await named.getByText("name=Import of Monday, source=crm").waitFor();
    await named.getByRole("link").click();
    await page.getByRole("heading", { name: "Import of Monday" }).waitFor();
    const waiting_id = await newThread();
    await run(waiting_id, { input: say("Refund order 1042 of the zebra shop") });
    await page.keyboard.press("Control+k");
    await page.keyboard.type("zebra");
    await page
      .getByRole("option", { name: /zebra shop/ })
      .getByText("Needs your input")
      .waitFor();
    await page.getByRole("combobox", { name: "Search" }).fill("quokka");
    await page.getByRole("option", { name: /quokka joke/ }).click();
    await page.getByRole("heading", { name: "Tell me a quokka joke" }).waitFor();
  });

  it("are counted, selected and deleted together after a confirmation", async () => {
    const ids: string[] = [];
    for (let number = 0; number < 55; number++) ids.push(await newThread({ name: `Import ${number}`, batch: "may" }));
    const page = await web.open("/threads?metadata=batch%3Dmay");
    await page.getByText("55 threads", { exact: true }).waitFor();
    // The page has loaded 50 of those that the text matches.
    await page.getByLabel("Search content or ID").fill((ids[0] as string).slice(0, 6));
    await page.waitForURL(/q=/);
    await page.getByText("55 threads", { exact: true }).waitFor();
    await page.getByLabel("Search content or ID").fill("");
    await page.waitForURL(/^(?!.*q=)/);
    const left = async (role: "heading" | "checkbox", name: string) =>
      (await page.getByRole(role, { name, exact: true }).boundingBox())?.x;
    await expect.poll(() => left("checkbox", "Select all")).toBe(await left("heading", "Threads"));
    await page.getByLabel("Select Import 54", { exact: true }).check();
    // The keyboard selects a row, too.
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByText("2 selected").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete 2 threads?" });
    await dialog.waitFor();
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("2 selected").waitFor();
    const held = Promise.withResolvers<void>();
    await page.route(/threads\/prune$/, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("0 of 2").waitFor();
    held.resolve();
    await page.getByText("2 threads deleted").waitFor();
    await page.getByText("53 threads", { exact: true }).waitFor();
    expect(await call("POST", "/threads/count", { metadata: { batch: "may" } })).toBe(53);
    expect((await web.service.request("GET", `/threads/${ids[54]}`)).status).toBe(404);
    // Threads that the filters hide are not deleted.
    await page.getByLabel("Select all").check();
    await page.getByLabel("Search content or ID").fill(ids[10] as string);
    await page.getByText("1 selected").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog", { name: "Delete 1 thread?" }).getByRole("button", { name: "Delete" }).click();
    await page.getByText("1 thread deleted").waitFor();
    expect(await call("POST", "/threads/count", { metadata: { batch: "may" } })).toBe(52);
  });

  it("that are not deleted yet are kept when the deletion is cancelled", async () => {
    for (let number = 0; number < 51; number++) await newThread({ name: `Mistake ${number}`, batch: "june" });
    const page = await web.open("/threads?metadata=batch%3Djune");
    await page.getByText("51 threads", { exact: true }).waitFor();
    await page.getByLabel("Select Mistake 50", { exact: true }).waitFor();
    await expect
      .poll(async () => {
        await page.getByRole("region", { name: "Threads" }).evaluate((each) => each.scrollTo(0, each.scrollHeight));
        return page.getByLabel("Select Mistake 0", { exact: true }).isVisible();
      })
      .toBe(true);
    await page.getByLabel("Select all").check();
    await page.getByText("51 selected").waitFor();
    const held = Promise.withResolvers<void>();
    await page.route(/threads\/prune$/, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete 51 threads?" });
    await dialog.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("0 of 51").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    held.resolve();
    await page.getByText("50 threads deleted").waitFor();
    await page.getByText("1 selected").waitFor();
    expect(await call("POST", "/threads/count", { metadata: { batch: "june" } })).toBe(1);
  });

  it("keep working when a draft is too large for the browser to store", async () => {
    const page = await web.open(`/threads/new?assistant=${await assistantOf("research")}`);
    await page.getByRole("radio", { name: "JSON" }).click();
    const input = page.getByLabel("Input (JSON)");
    await input.fill(JSON.stringify({ question: "Short?" }));
    await page.evaluate("sessionStorage.setItem('full', 'x'.repeat(5 * 1024 * 1024 - 1_000))");
    await input.fill(JSON.stringify({ question: `${"Long? ".repeat(1_000)}` }));
    await expect.poll(() => input.inputValue()).toContain("Long? Long?");
    await page.evaluate("sessionStorage.removeItem('full')");
    await input.fill(JSON.stringify({ question: "Short again?" }));
    await page.reload();
    await page.getByText("Short again?").waitFor();
  });

  it("can be copied and deleted", async () => {
    const thread_id = await newThread();
    await run(thread_id, { input: say("Keep this") });
    const page = await web.open(`/threads/${thread_id}`, { refused: [404] });
    await page.getByRole("button", { name: "Thread actions" }).click();
    await page.getByRole("menuitem", { name: "Copy thread" }).click();
    await page.getByText("Thread copied with its history. Runs are not copied.", { exact: true }).waitFor();
    expect(page.url()).not.toContain(thread_id);
    await said(page, "Keep this");
    const copy_id = page.url().split("/").at(-1);
    await page.getByRole("button", { name: "Thread actions" }).click();
    await page.getByRole("menuitem", { name: "Delete thread" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("Thread deleted", { exact: true }).waitFor();
    expect((await web.service.request("GET", `/threads/${copy_id}`)).status).toBe(404);
    await page.goto(`${web.url}/app/threads/${copy_id}`);
    await page.getByText("not found").waitFor();
  });

  it("have the first token on the screen soon after the server sent it", async () => {
    const figures: number[] = [];
    for (let i = 0; i < 5; i++) figures.push(await firstToken(i));
    figures.sort((a, b) => a - b);
    console.log(`First token on the screen after the server sent it: median ${figures[2]} ms, worst ${figures[4]} ms.`);
    // The other reader shares its process with the service, so that it may be later than the browser.
    expect(Math.abs(figures[2] as number)).toBeLessThan(1_000);
  });

  /** From the token's arrival at another reader of the same server to the frame that shows it, in ms. */
  async function firstToken(round: number): Promise<number> {
    const thread_id = await newThread();
    const page = await web.open(`/threads/${thread_id}?assistant=${await assistantOf("support_desk")}`);
    await page.getByText("No messages yet").waitFor();
    await page.evaluate(SEE_FIRST_TOKEN);
    const leaving = new AbortController();
    const sent = firstTokenSent(`${web.url}/threads/${thread_id}/stream`, leaving.signal);
    await send(page, `Hello ${round}`);
    const sent_at = await sent;
    leaving.abort();
    const seen_at = (await page.evaluate("window.firstToken")) as number;
    await said(page, "refund order 1042");
    await page.close();
    return Math.round(seen_at - sent_at);
  }

  it("are accessible on wide and narrow screens, in light and dark themes", { timeout: PICTURES_MS }, async () => {
    const thread_id = await newThread({ customer: 12 });
    await run(thread_id, { input: say("Where is my order 1043?") });
    await run(thread_id, { input: say("It does not fit. Refund it, please.") });
    await takePictures(web, "threads", "/threads", (page) =>
      page.getByText("Where is my order 1043?").first().waitFor(),
    );
    await takePictures(web, "thread", `/threads/${thread_id}`, (page) => question(page).waitFor());
    await takePictures(web, "thread-graph", `/threads/${thread_id}?side=graph`, (page) =>
      page.locator("[data-node=approve]").waitFor(),
    );
  });
});

/** Number of requests before the page gives up reading an event stream, and waits between them that take a hundredth of the time. */
const ATTEMPTS = 7;
const SHORT_WAITS = `const wait = setTimeout;
setTimeout = (run, ms, ...given) => wait(run, ms / 100, ...given);`;

/** A clock that is a minute behind. */
const SLOW_CLOCK = `const Real = Date;
Date = class extends Real {
  constructor(...given) {
    super(...(given.length > 0 ? given : [Real.now() - 60_000]));
  }
  static now = () => Real.now() - 60_000;
};`;

/** Puts the time of the frame that shows the agent's first word into `window.firstToken`, as a promise. */
const SEE_FIRST_TOKEN = `window.firstToken = new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector("[data-speaker=agent]")?.textContent.includes("Hello!")) return;
    observer.disconnect();
    requestAnimationFrame(() => resolve(performance.timeOrigin + performance.now()));
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}), undefined`;

/** When the first piece of a message arrives at a reader beside the browser. */
async function firstTokenSent(url: string, signal: AbortSignal): Promise<number> {
  const response = await fetch(url, { signal });
  const decoder = new TextDecoder();
  for await (const bytes of response.body as ReadableStream<Uint8Array>)
    if (/^event: messages/m.test(decoder.decode(bytes, { stream: true })))
      return performance.timeOrigin + performance.now();
  throw new Error("The stream ended without a message.");
}
