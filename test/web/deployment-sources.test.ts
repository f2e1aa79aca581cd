import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { PROJECT, temporaryFolder, writeFiles } from "../control/deployed-project.ts";
import { describeInBrowser, expectAccessible, WebTest } from "./browser.ts";

/** A deployment is built and started within this time, in ms, also on a busy machine. */
const DEPLOYED_MS = 60_000;

describeInBrowser("deployments of repositories and images", () => {
  let web: WebTest;
  let folder: string;
  let commit: string;
  beforeAll(async () => {
    folder = writeFiles(temporaryFolder(), PROJECT);
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder, encoding: "utf8" });
    git("init", "--quiet", "--initial-branch=main");
    git("add", ".");
    git("commit", "--quiet", "-m", "first");
    commit = git("rev-parse", "HEAD").trim();
    web = await WebTest.start({
      env: {
        THREADMILL_DEPLOY_GIT_PROTOCOLS: "https,file",
        THREADMILL_DOCKER_HOST: `unix://${join(folder, "nobody.sock")}`,
        THREADMILL_DOCKER_REGISTRIES: "registry.example.com",
      },
    });
  });
  afterEach(() => web.closePages());
  afterAll(async () => {
    for (const { id } of (await web.service.request("GET", "/v2/deployments")).body.resources)
      await web.service.request("DELETE", `/v2/deployments/${id}`);
    await web.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const begin = async (page: Page, name: string, kind: string) => {
    await page.keyboard.press("n");
    await page.getByLabel("Name", { exact: true }).last().fill(name);
    await page.getByRole("radio", { name: kind }).check();
  };
  const deploy = (page: Page) => page.getByRole("button", { name: "Deploy", exact: true }).click();
  const latest = (page: Page) => page.getByRole("table", { name: "Revisions" }).getByRole("row").nth(1);
  const open = async (refused: number[] = []) => {
    const page = await web.open("/deployments", { refused });
    await page.getByRole("button", { name: "New deployment" }).waitFor();
    return page;
  };

  it("are created from a branch of a git repository, and show the commit", async () => {
    const page = await open();
    await begin(page, "from git", "Git repository");
    await page.getByLabel("Repository", { exact: true }).fill(`file://${folder}`);
    await page.getByLabel("Branch or tag").fill("main");
    await expectAccessible(page);
    await deploy(page);
    const lines = page.getByRole("region", { name: "Lines" });
    await lines.getByText(`Checked out commit ${commit}.`).waitFor({ timeout: DEPLOYED_MS });
    await page.getByText(`file://${folder}`).first().waitFor();
    await page.getByRole("tab", { name: "Revisions" }).click();
    await latest(page).getByText("Live").waitFor({ timeout: DEPLOYED_MS });
    await latest(page)
      .getByText(`main ${commit.slice(0, 8)}`)
      .waitFor();
  });

  it("show the server's error message for a repository, and keep what was typed", async () => {
    const page = await open([400, 422]);
    await begin(page, "mistyped", "Git repository");
    await page.getByLabel("Repository", { exact: true }).fill("not a repository");
    await deploy(page);
    const alert = page.getByRole("alert");
    await alert.getByText(/must be the URL of a git repository/).waitFor();
    await page.getByLabel("Repository", { exact: true }).fill(`file://${folder}`);
    await page.getByLabel("Branch or tag").fill("nobody/has/this");
    await deploy(page);
    await page.waitForURL(/\/deployments\/[0-9a-f-]{36}/);
    await page.getByRole("tab", { name: "Revisions" }).click();
    await latest(page).getByText("build failed").waitFor({ timeout: DEPLOYED_MS });
    await expect.poll(() => latest(page).innerText()).toContain("couldn't find remote ref nobody/has/this");
  });

  it("are created from an image, and report that Docker is not available", async () => {
    const page = await open();
    await begin(page, "from an image", "Image");
    await page.getByLabel("Image", { exact: true }).last().fill("registry.example.com/team/agent:1");
    await expectAccessible(page);
    await deploy(page);
    await page.waitForURL(/\/deployments\/[0-9a-f-]{36}/);
    await page.getByRole("tab", { name: "Revisions" }).click();
    await latest(page).getByText("registry.example.com/team/agent:1").waitFor();
    await latest(page).getByText("deploy failed").waitFor({ timeout: DEPLOYED_MS });
    await latest(page)
      .getByText(/Cannot connect to the Docker Engine at .*nobody\.sock/)
      .waitFor();
  });
});
