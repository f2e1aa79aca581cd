import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

const ROOT_KEY = "root-0123456789abcdef0123456789abcdef";

describeInBrowser("the settings of a closed service", () => {
  let web: WebTest;
  beforeAll(async () => {
    web = await WebTest.start({ env: { API_KEYS: ROOT_KEY } });
  });
  afterEach(() => web.closePages());
  afterAll(() => web.stop());

  it("require a sign-in that reports an invalid key, and keeps the key out of addresses", async () => {
    const page = await web.open("/settings?section=keys", { refused: [401] });
    const key = page.getByLabel("API key");
    await expectAccessible(page);
    await key.fill("tmk_nobody_made_this");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Invalid key").waitFor();
    await key.fill(ROOT_KEY);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No API keys yet").waitFor();
    await expect.poll(() => page.url()).toBe(`${web.url}/app/settings?section=keys`);
    await page.reload();
    await page.getByText("No API keys yet").waitFor();
    await page.goto(`${web.url}/app/settings`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to Threadmill" }).waitFor();
    await expect
      .poll(() => page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])"))
      .toBe("[{},{}]");
  });

  it("copy a key on a page that is loaded over plain HTTP, too", async () => {
    const page = await web.open("/settings?section=keys", { key: ROOT_KEY, plain: true });
    await page.getByRole("button", { name: "New key" }).click();
    const name = page.getByLabel("Name", { exact: true });
    await name.fill("desk");
    await page.getByRole("button", { name: "Create key" }).click();
    const key = await page.getByRole("dialog").locator("pre").innerText();
    await page.getByRole("button", { name: "Copy key" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "New key" }).click();
    await name.press("ControlOrMeta+v");
    await expect.poll(() => name.inputValue()).toBe(key);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Revoke desk" }).click();
    await page.getByRole("button", { name: "Revoke", exact: true }).click();
    await page.getByRole("row", { name: /desk/ }).getByText("revoked").waitFor();
  });

  it("create a key that is shown once and works, and revoke it", async () => {
    const page = await web.open("/settings?section=keys", { key: ROOT_KEY });
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("laptop");
    await page.getByLabel("User", { exact: true }).fill("alice");
    await page.getByRole("button", { name: "Create key" }).click();
    const key = await page.getByRole("dialog").locator("pre").innerText();
    await page.getByRole("button", { name: "Copy key" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe(key);
    await page.getByRole("button", { name: "Done" }).click();
    const row = page.getByRole("row", { name: /laptop/ });
    await expect.poll(() => row.innerText()).toContain("alice");
    expect(await page.content()).not.toContain(key);

    const session = () => web.service.request("GET", "/app/api/session", undefined, { "X-Api-Key": key });
    expect((await session()).body).toEqual({
      user_id: "alice",
      tenant_id: "00000000-0000-0000-0000-000000000001",
      scopes: ["agents", "experiments", "tokens"],
    });
    await row.getByRole("button", { name: "Revoke laptop" }).click();
    await page.getByRole("button", { name: "Revoke", exact: true }).click();
    await row.getByText("revoked").waitFor();
    expect((await session()).status).toBe(401);
  });

  it("create a workspace with members, and switch to it", async () => {
    const page = await web.open("/settings?section=workspaces", { key: ROOT_KEY });
    await page.getByLabel("New workspace").fill("Research");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("row", { name: /Research/ }).click();
    await page.getByLabel("User").fill("bob");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByRole("listitem").filter({ hasText: "bob" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: "General" }).click();
    await page.getByRole("combobox", { name: "Workspace" }).click();
    await page.getByRole("option", { name: "Research" }).click();
    await page.getByRole("combobox", { name: "Workspace" }).filter({ hasText: "Research" }).waitFor();
    await page.getByRole("tab", { name: "API keys" }).click();
    await page.getByText("No API keys yet").waitFor();
  });

  it("show the error message of the server", async () => {
    const page = await web.open("/settings?section=workspaces", { key: ROOT_KEY, refused: [409] });
    for (const name of ["Twice", "Twice"]) {
      await page.getByLabel("New workspace").fill(name);
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByRole("row", { name: /Twice/ }).waitFor();
    }
    const { body } = await web.service.request(
      "POST",
      "/admin/workspaces",
      { name: "Twice" },
      { "X-Api-Key": ROOT_KEY },
    );
    await page.getByText(body.detail).waitFor();
  });

  it("show which scope a key lacks", async () => {
    const { body } = await web.service.request("POST", "/admin/keys", { name: "agents" }, { "X-Api-Key": ROOT_KEY });
    const page = await web.open("/settings?section=keys", { key: body.key });
    await page.getByText("requires an API key with the scope admin").waitFor();
  });

  it("are accessible on wide and narrow screens, in light and dark themes", async () => {
    for (const name of ["ci", "notebook", "nightly experiments"])
      await web.service.request("POST", "/admin/keys", { name }, { "X-Api-Key": ROOT_KEY });
    const signedIn = { key: ROOT_KEY };
    await takePictures(web, "settings", "/settings", (page) => page.getByText("API level 0").waitFor(), signedIn);
    await takePictures(web, "keys", "/settings?section=keys", (page) => page.getByText("notebook").waitFor(), signedIn);
    await takePictures(
      web,
      "new-key",
      "/settings?section=keys",
      (page) => page.getByRole("button", { name: "New key" }).click(),
      signedIn,
    );
    await takePictures(web, "sign-in", "/settings", (page) => page.getByLabel("API key").waitFor(), { refused: [401] });
  });
});

describeInBrowser("the settings of an open service", () => {
  it("show the first key, stay signed in with it, and can create more", async () => {
    const web = await WebTest.start();
    const page = await web.open("/settings?section=keys", { refused: [401] });
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByText("This is the first key.").waitFor();
    expect(await page.getByRole("checkbox", { name: "admin" }).isDisabled()).toBe(true);
    await page.getByLabel("Name", { exact: true }).fill("first");
    await page.getByRole("button", { name: "Create key" }).click();
    const key = await page.getByRole("dialog").locator("pre").innerText();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("row", { name: /first/ }).waitFor();
    const headers = { "X-Api-Key": key };
    expect((await web.service.request("GET", "/admin/keys")).status).toBe(401);
    expect((await web.service.request("GET", "/admin/keys", undefined, headers)).status).toBe(200);
    await page.reload();
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("second");
    expect(await page.getByText("This is the first key.").count()).toBe(0);
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("row", { name: /second/ }).waitFor();
    await web.closePages();
    await web.stop();
  });
});
