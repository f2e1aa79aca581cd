import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeInBrowser, expectAccessible, THEMES, WebTest } from "./browser.ts";

/** The pages of the API documentation beside the agent server, each with a path of its API. */
const OTHER_DOCUMENTS = [
  ["Experiments", "/api/v1/datasets/upload-experiment"],
  ["Control plane", "/v2/deployments"],
  ["Administration", "/admin/keys"],
] as const;

describeInBrowser("the frame of an open service", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start();
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  it("opens a page without a key, from the address that the program prints", async () => {
    const page = await web.open("");
    await page.goto(web.url);
    await page.getByRole("heading", { name: "Recent threads" }).waitFor();
    await expect.poll(() => page.url()).toMatch(/\/app\/?$/);
  });

  it("has all pages on a phone, without clipped or overlapping content", async () => {
    for (const [path, label] of [
      ["/settings", "Settings"],
      ["/experiments", "Experiments"],
      ["/traces", "Traces"],
    ] as const) {
      const page = await web.open(path, { narrow: true });
      const bar = page.getByRole("navigation", { name: "Pages" });
      await bar.getByRole("link", { name: label }).getByText(label).waitFor();
      const links = bar.getByRole("link").filter({ visible: true });
      await links.nth(9).waitFor();
      const boxes = await links.evaluateAll((all) =>
        all.map((each) => {
          const inner = [...each.children].map((child) => child.getBoundingClientRect().right);
          const { left, right } = each.getBoundingClientRect();
          return { left, right: Math.max(right, ...inner) };
        }),
      );
      expect(boxes).toHaveLength(11);
      boxes.forEach(({ left }, index) => {
        expect(left).toBeGreaterThanOrEqual(boxes[index - 1]?.right ?? 0);
      });
      expect(boxes.at(-1)?.right).toBeLessThanOrEqual(390);
      await expectAccessible(page);
    }
  });

  it("finds a page by its name with the keyboard only", async () => {
    const page = await web.open("/nowhere");
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search" }).waitFor();
    await page.keyboard.type("sett");
    await page.getByRole("option", { name: "Experiments" }).waitFor({ state: "detached" });
    await page.getByRole("option", { name: "Settings" }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    await expect.poll(() => new URL(page.url()).pathname).toBe("/app/settings");
  });

  it("lists the shortcuts of the page, and does not intercept letters while the user types", async () => {
    const page = await web.open("/settings?section=workspaces");
    await page.getByRole("row", { name: /default/ }).waitFor();
    await page.keyboard.press("?");
    await page.getByText("Next row").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.getByLabel("New workspace").fill("");
    await page.getByLabel("New workspace").pressSequentially("why? jk");
    await expect.poll(() => page.getByLabel("New workspace").inputValue()).toBe("why? jk");
    expect(await page.getByText("Next row").count()).toBe(0);
  });

  it("shows the focus ring of a tab as a whole", async () => {
    const page = await web.open("/settings");
    const tab = page.getByRole("tab").first();
    await tab.focus();
    const ring = await tab.evaluate((element) => {
      const style = element.ownerDocument.defaultView?.getComputedStyle(element);
      return [style?.outlineStyle, style?.outlineWidth, style?.outlineOffset];
    });
    // Inside of the tab, because the list of the tabs clips what is outside of it.
    expect(ring).toEqual(["solid", "2px", "-2px"]);
  });

  it("leads to API documentation in the theme of the system", async () => {
    const page = await web.open("");
    await page.getByRole("link", { name: "API documentation" }).click();
    await page.getByText("/threads/{thread_id}/runs", { exact: true }).first().click();
    const colors: string[] = [];
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await expectAccessible(page, ["color-contrast"]);
      colors.push(await page.evaluate("getComputedStyle(document.body).color"));
    }
    expect(colors).toEqual(["rgb(0, 0, 0)", "rgb(255, 255, 255)"]);
    for (const [title, path] of OTHER_DOCUMENTS) {
      await page.getByRole("link", { name: title, exact: true }).first().click();
      await page.getByText(path, { exact: true }).first().waitFor();
    }
  });

  it("draws a shell in the colours of the theme before its styles and scripts have loaded", async () => {
    const page = await web.open("/settings", { theme: "dark" });
    await page.getByRole("radio", { name: "System" }).waitFor();
    const background = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    const loaded = Promise.withResolvers<void>();
    await page.route(/\/app\/assets\//, async (route) => {
      await loaded.promise;
      await route.continue();
    });
    await page.goto(page.url(), { waitUntil: "commit" });
    const shell = page.getByRole("status").filter({ hasText: "Loading…" });
    await shell.waitFor();
    expect(await page.evaluate("getComputedStyle(document.getElementById('shell')).backgroundColor")).toBe(background);
    loaded.resolve();
    await page.getByRole("radio", { name: "System" }).waitFor();
    await shell.waitFor({ state: "detached" });
  });

  it("says that its data may be outdated while it is offline, and opens the page of a click once it is online", async () => {
    const page = await web.open("/settings", { loses: true });
    await page.getByRole("radio", { name: "System" }).waitFor();
    await page.context().setOffline(true);
    const banner = page.getByRole("status").filter({ hasText: "You are offline. Data may be outdated: last update" });
    await banner.waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Runs" }).click();
    await page.waitForURL(/\/app\/runs$/);
    await banner.waitFor();
    await page.context().setOffline(false);
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await banner.waitFor({ state: "detached" });
  });

  it("says that the server does not respond, and asks again on demand", async () => {
    const page = await web.open("/experiments", { loses: true });
    await page.getByText("No experiments yet").waitFor();
    const data = (url: URL) => !url.pathname.startsWith("/app/") || url.pathname.startsWith("/app/api/");
    await page.route(data, (route) => route.abort("internetdisconnected"));
    await page.getByRole("link", { name: "Queues" }).click();
    const banner = page.getByRole("status").filter({ hasText: "The server is not responding. Data may be outdated" });
    await banner.waitFor();
    // The page has given up, so that only the click asks again.
    await page.getByRole("main").getByRole("alert").waitFor();
    await page.unroute(data);
    await banner.getByRole("button", { name: "Try again" }).click();
    await banner.waitFor({ state: "detached" });
    await page.getByText("No annotation queues yet").waitFor();
  });

  it.each(["/threads/latest", "/experiments/sessions/latest", "/deployments/latest"])(
    "explains an invalid ID in the address, without a useless retry: %s",
    async (path) => {
      const page = await web.open(path, { refused: [404, 422] });
      await page.getByRole("alert").getByText("The address of this page contains an invalid ID").waitFor();
      expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    },
  );

  it("remembers the theme, whatever the system has", async () => {
    const page = await web.open("/settings", { theme: "dark" });
    const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    await page.getByRole("radio", { name: "System" }).waitFor();
    const dark = await background();
    await page.getByRole("radio", { name: "Light" }).click();
    const light = await background();
    expect(light).not.toBe(dark);
    await page.reload();
    expect(await background()).toBe(light);
    await page.getByRole("radio", { name: "System" }).click();
    await expect.poll(() => background()).toBe(dark);
  });
});
