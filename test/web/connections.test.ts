import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FakeProvider } from "../support/fake-provider.ts";
import { OAuthServer } from "../support/oauth-server.ts";
import { describeInBrowser, expectAccessible, takePictures, WebTest } from "./browser.ts";

const CLIENT = {
  client_id: "threadmill",
  client_secret: "a-secret-of-the-client",
  token_endpoint_auth_method: "client_secret_post",
} as const;

describeInBrowser("the connections", () => {
  let web: WebTest;
  let oauth: OAuthServer;
  beforeAll(async () => {
    web = await WebTest.start({ env: { THREADMILL_ALLOW_LOOPBACK_OAUTH: "1" } });
    oauth = await OAuthServer.start([CLIENT], [`${web.url}/v2/auth/callback/acme`]);
  });
  afterEach(() => web.closePages());
  afterAll(async () => {
    await web.stop();
    await oauth.stop();
  });

  const tokens = async () => (await web.service.request("GET", "/v2/auth/tokens")).body;
  const acme = (page: Page) => page.getByRole("region", { name: "Acme" });
  /** Goes to the provider, agrees there, and comes back. */
  const connect = async (page: Page, scopes: string) => {
    await acme(page).getByRole("button", { name: "Connect Acme account" }).click();
    await page.getByLabel("Scopes").fill(scopes);
    const tab = page.waitForEvent("popup");
    await page.getByRole("button", { name: /^Continue to/ }).click();
    await (await tab).getByText("Connected: acme").waitFor();
    await page.getByText("Acme account connected").first().waitFor();
  };

  it("explain what a provider is for, and create one whose secret is never shown again", async () => {
    const page = await web.open("/connections");
    await page.getByText("No providers yet").waitFor();
    await page.keyboard.press("n");
    const fill = (label: string, value: string) => page.getByLabel(label, { exact: true }).fill(value);
    await fill("Name", "Acme");
    await fill("ID", "acme");
    await page.getByText(`${web.url}/v2/auth/callback/acme`).waitFor();
    await fill("Client ID", CLIENT.client_id);
    await fill("Client secret", CLIENT.client_secret);
    await fill("Authorization URL", `${oauth.url}/auth`);
    await fill("Token URL", `${oauth.url}/token`);
    await fill("Revocation URL", `${oauth.url}/token/revocation`);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create provider" }).click();
    await acme(page).getByText("No accounts connected").waitFor();
    expect(await page.content()).not.toContain(CLIENT.client_secret);
  });

  it("show the error of the server when a provider exists", async () => {
    const page = await web.open("/connections?create=true", { refused: [409] });
    for (const [label, value] of [
      ["Name", "Acme"],
      ["ID", "acme"],
      ["Client ID", "x"],
      ["Authorization URL", `${oauth.url}/auth`],
      ["Token URL", `${oauth.url}/token`],
    ] as const)
      await page.getByLabel(label, { exact: true }).fill(value);
    await page.getByRole("button", { name: "Create provider" }).click();
    await page.getByRole("alert").getByText("acme").waitFor();
  });

  it("connect accounts in a tab of their own, and make one of them the default", async () => {
    const page = await web.open("/connections");
    await connect(page, "read");
    await acme(page).getByText("default", { exact: true }).waitFor();
    await connect(page, "read write");
    const accounts = acme(page).getByRole("listitem");
    await accounts.nth(1).waitFor();
    expect(await page.content()).not.toContain(oauth.issued[0]);
    const other = accounts.filter({ hasNotText: "default" }).or(accounts.filter({ hasText: "Set as default" }));
    const [before] = (await tokens()).filter((token: { is_default: boolean }) => token.is_default);
    await other.getByRole("button", { name: /^Set as default/ }).click();
    await expect
      .poll(async () => (await tokens()).find((token: { id: string }) => token.id === before.id).is_default)
      .toBe(false);
  });

  it("are accessible on wide and narrow screens, in light and dark themes", async () => {
    await takePictures(web, "connections", "/connections", (page) => page.getByText("Set as default").waitFor());
  });

  it("disconnect one account, or all of a provider, which are revoked there", async () => {
    const page = await web.open("/connections");
    const accounts = acme(page).getByRole("listitem");
    await accounts
      .first()
      .getByRole("button", { name: /^Disconnect/ })
      .click();
    await page.getByRole("button", { name: "Disconnect", exact: true }).click();
    // Behind the dialog no account has a role, so that none is there until it has closed.
    await expect.poll(tokens).toHaveLength(1);
    await accounts.nth(1).waitFor({ state: "detached" });
    await connect(page, "read");
    await page.getByRole("button", { name: "Actions for Acme" }).click();
    await page.getByRole("menuitem", { name: /Disconnect all/ }).click();
    await page.getByRole("button", { name: "Disconnect", exact: true }).click();
    await acme(page).getByText("No accounts connected").waitFor();
    expect(await tokens()).toEqual([]);
    await expect.poll(() => oauth.requests.filter((path) => path === "/token/revocation").length).toBeGreaterThan(2);
  });

  it("delete a provider", async () => {
    const page = await web.open("/connections");
    await page.getByRole("button", { name: "Actions for Acme" }).click();
    await page.getByRole("menuitem", { name: /Delete provider/ }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("No providers yet").waitFor();
  });

  describe("with an MCP server", () => {
    let mcp: FakeProvider;
    beforeAll(async () => {
      mcp = await FakeProvider.start();
    });
    afterAll(() => mcp.stop());

    const METADATA = "/.well-known/oauth-protected-resource/mcp";
    const tools = (page: Page) => page.getByRole("region", { name: "Tools" });
    const begin = async (page: Page) => {
      await page.getByRole("button", { name: "New provider" }).click();
      await page.getByRole("radio", { name: "Discover from an MCP server" }).check();
      await page.getByLabel("Name", { exact: true }).fill("Tools");
      await page.getByLabel("ID", { exact: true }).fill("tools");
      await page.getByLabel("MCP server", { exact: true }).fill(`${mcp.url}/mcp`);
    };

    it("show why none was found when a server does not name its authorization server", async () => {
      mcp.reply = () => ({ status: 404 });
      const page = await web.open("/connections", { refused: [400] });
      await begin(page);
      await expectAccessible(page);
      await page.getByRole("button", { name: "Create provider" }).click();
      await page
        .getByRole("alert")
        .getByText(/metadata/)
        .waitFor();
      await expect.poll(() => page.getByLabel("MCP server", { exact: true }).inputValue()).toBe(`${mcp.url}/mcp`);
    });

    it("create a provider from the metadata of the server, at which accounts are connected", async () => {
      const resource = `${mcp.url}/mcp`;
      mcp.reply = ({ path }) =>
        path === METADATA ? { body: { resource, authorization_servers: [oauth.url] } } : { status: 401 };
      const page = await web.open("/connections");
      await begin(page);
      await page.getByRole("button", { name: "Create provider" }).click();
      await tools(page).getByText(resource).waitFor();
      await tools(page).getByRole("button", { name: "Connect Tools account" }).click();
      await page.getByLabel("Scopes").fill("read");
      const tab = page.waitForEvent("popup");
      await page.getByRole("button", { name: /^Continue to/ }).click();
      await (await tab).getByText("Connected: tools").waitFor();
      await tools(page).getByText("default", { exact: true }).waitFor();
      const [token] = await tokens();
      expect(token).toMatchObject({ provider_id: "tools", is_default: true });
    });
  });
});
