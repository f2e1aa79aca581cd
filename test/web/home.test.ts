import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeInBrowser, expectAccessible, hueOf, THEMES, takePictures, WebTest } from "./browser.ts";

/** Lowest contrast of the dots before names, over all hues and all backgrounds. */
const LOWEST_CONTRAST = `(() => {
  const dot = document.querySelector(".bg-hue");
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((each) =>
      each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgrounds = ["bg", "sunken", "raised", "hover", "selected"].map((name) =>
    luminance(getComputedStyle(document.documentElement).getPropertyValue("--" + name)));
  const contrasts = Array.from({ length: 360 }, (_, hue) => {
    dot.style.setProperty("--hue", hue);
    const own = luminance(getComputedStyle(dot).backgroundColor);
    return backgrounds.map((other) => (Math.max(own, other) + 0.05) / (Math.min(own, other) + 0.05));
  });
  return Math.min(...contrasts.flat());
})()`;

describeInBrowser("the home page and the inbox", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start();
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  const call = async (method: string, path: string, body?: unknown): Promise<any> => {
    const answer = await web.service.request(method, path, body);
    expect([method, path, answer.status]).toEqual([method, path, 200]);
    return answer.body;
  };
  const ask = async (content: string): Promise<string> => {
    const { thread_id } = await call("POST", "/threads", {});
    const input = { messages: [{ role: "user", content }] };
    const { __interrupt__ } = await call("POST", `/threads/${thread_id}/runs/wait`, {
      assistant_id: "support_desk",
      input,
    });
    expect(__interrupt__).toHaveLength(1);
    return thread_id;
  };
  const badge = (page: Page) => page.getByTitle("Threads that need your input or are paused");
  const threadOf = (page: Page) => page.getByRole("region", { name: "Selected thread" });
  const lists = (page: Page, name: string) => page.getByRole("region", { name });

  it("say what they will list while there is nothing", async () => {
    const page = await web.open("");
    for (const text of ["approval or an answer", "conversations with agents", "end with an error", "Deployed agents"])
      await page.getByText(text).waitFor();
    await page.getByText("which scores improved or dropped").waitFor();
    expect(await badge(page).count()).toBe(0);
    await expectAccessible(page);
    await page.getByRole("link", { name: "Inbox" }).first().click();
    await page.getByText("Nothing needs your input").waitFor();
    await expectAccessible(page);
  });

  it("begin a thread from the prompt, and leave what is written meanwhile to its page", async () => {
    const page = await web.open("");
    await page.getByRole("combobox", { name: "Assistant" }).click();
    await page.getByRole("option", { name: "support_desk" }).click();
    const held = Promise.withResolvers<void>();
    await page.route(/\/runs$/, async (route) => {
      await held.promise;
      await route.continue();
    });
    const message = page.getByRole("textbox", { name: "Message" });
    await page.getByRole("radio", { name: "Form" }).waitFor();
    await message.fill("Where is order 1042?");
    await message.press("Enter");
    await expect.poll(() => page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
    await message.fill("And order 1044?");
    held.resolve();
    await page.getByText("Order 1042 (walking boots) is shipped").waitFor();
    await expect.poll(() => message.inputValue()).toBe("And order 1044?");
    await page.goto(`${web.url}/app/threads/new`);
    await page.goto(`${web.url}/app`);
    await page.getByRole("radio", { name: "JSON" }).waitFor();
    expect(await page.getByText("And order 1044?").count()).toBe(0);
    const recent = lists(page, "Recent threads");
    await recent.getByRole("link", { name: "Where is order 1042?" }).waitFor();
  });

  it("keep the chosen agent for the next visit, with the focus in the message", async () => {
    const page = await web.open("");
    const agent = page.getByRole("combobox", { name: "Assistant" });
    await agent.click();
    await page.getByRole("option", { name: "support_desk" }).click();
    await page.reload();
    await agent.getByText("support_desk").waitFor();
    await page.getByRole("textbox", { name: "Message" }).and(page.locator(":focus")).waitFor();
  });

  it("list what waits and what failed, and lead there", async () => {
    const thread_id = await ask("Refund order 1042");
    await web.service.request("POST", "/runs/wait", { assistant_id: "research", input: { question: "" } });
    const page = await web.open("");
    const failed = lists(page, "Failed runs").getByRole("link", { name: /research.*needs a question/ });
    await failed.waitFor();
    await lists(page, "Needs your input")
      .getByRole("link", { name: "Refund $129.00 for order 1042 (walking boots)?" })
      .click();
    await page.waitForURL(new RegExp(`/inbox\\?thread=${thread_id}`));
    await threadOf(page).getByRole("heading", { name: "Refund order 1042" }).waitFor();
    await page.goBack();
    await failed.click();
    await page.getByRole("dialog", { name: "research" }).waitFor();
  });

  it("answer one thread after the other with the keyboard, and count those that are left", async () => {
    const ids = [await ask("Refund order 1043"), await ask("Refund order 1042")];
    const page = await web.open("/inbox");
    const left = Number(await badge(page).innerText());
    expect(left).toBe((await call("POST", "/threads/count", { status: "interrupted" })) as number);
    const rows = page.getByRole("table", { name: "Inbox" }).getByRole("row");
    await threadOf(page).getByText("Refund $129.00 for order 1042").waitFor();
    await expectAccessible(page);
    // The newest thread is selected at first.
    await page.keyboard.press("j");
    await page.waitForURL(new RegExp(ids[0] as string));
    await threadOf(page).getByText("Refund $89.50 for order 1043").waitFor();
    await page.keyboard.press("a");
    await page.getByText("Answer sent: Refund order 1043").waitFor();
    await expect.poll(() => badge(page).innerText()).toBe(String(left - 1));
    await expect.poll(() => rows.count()).toBe(1 + left - 1);
    await expect
      .poll(async () => JSON.stringify((await call("GET", `/threads/${ids[0]}/state`)).values))
      .toContain("Done: $89.50 for order 1043");
    await page.keyboard.press("k");
    await page.waitForURL(new RegExp(ids[1] as string));
    await threadOf(page).getByText("Refund $129.00 for order 1042").waitFor();
    await page.keyboard.press("r");
    await threadOf(page).getByLabel("Reason").fill("It was worn.");
    await threadOf(page).getByRole("button", { name: "Reject" }).click();
    await expect
      .poll(async () => JSON.stringify((await call("GET", `/threads/${ids[1]}/state`)).values))
      .toContain("It was worn.");
    await expect.poll(() => badge(page).innerText()).toBe(String(left - 2));
    const sent = page.locator("[data-toast]", { hasText: "Answer sent: Refund order 1042" });
    await sent.getByRole("button", { name: "Open thread" }).click();
    await page.waitForURL(new RegExp(`/threads/${ids[1]}`));
  });

  it("keep the thread that is being answered when another one arrives", async () => {
    await ask("Refund order 1042");
    const page = await web.open("/inbox");
    const rows = page.getByRole("table", { name: "Inbox" }).getByRole("row");
    await threadOf(page).getByText("Refund $129.00 for order 1042").waitFor();
    const before = await rows.count();
    await page.keyboard.press("r");
    await threadOf(page).getByLabel("Reason").fill("It was");
    await ask("Refund order 1043");
    await expect.poll(() => rows.count(), { timeout: 20_000 }).toBe(before + 1);
    expect(await threadOf(page).getByLabel("Reason").inputValue()).toBe("It was");
    await threadOf(page).getByText("Refund $129.00 for order 1042").waitFor();
  });

  it("give an agent the same hue on all pages, which is visible on all backgrounds", async () => {
    await ask("Refund order 1042");
    const page = await web.open("");
    const hues = new Set<string>();
    for (const path of ["", "/agents", "/threads", "/runs"]) {
      await page.goto(`${web.url}/app${path}`);
      hues.add(await hueOf(page.locator("main"), "support_desk"));
    }
    expect([...hues]).toEqual([expect.stringMatching(/^\d+$/)]);
    await page.goto(`${web.url}/app/agents`);
    expect(await hueOf(page.locator("main"), "research")).not.toBe([...hues][0]);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
      await expect.poll(() => page.evaluate<number>(LOWEST_CONTRAST)).toBeGreaterThanOrEqual(3);
    }
  });

  it("are legible to everybody, wide and narrow, light and dark", { timeout: 120_000 }, async () => {
    await ask("Refund order 1042");
    await takePictures(web, "home", "", (page) => page.getByText("Deployed agents").waitFor());
    await takePictures(web, "inbox", "/inbox", (page) => page.getByText("Refund $129.00").first().waitFor());
  });
});
