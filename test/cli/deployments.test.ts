import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { insertLogLines } from "../../src/control-plane/storage/logs.ts";
import { isoOfMilliseconds } from "../../src/platform/lib/times.ts";
import { ControlApi, empty, ofImage, type User, type Wire } from "../http/control/api.ts";
import { runCli, startCli } from "../support/process.ts";

const START = Date.UTC(2026, 0, 31, 12);

describe("the deployments commands", () => {
  let api: ControlApi;
  let ada: User;
  let url: string;
  let env: Record<string, string>;
  beforeAll(async () => {
    api = await ControlApi.start("sqlite");
    ada = await api.user();
    url = await api.service.listen();
    env = { THREADMILL_API_KEY: ada.key, LANGSMITH_API_KEY: "" };
  });
  afterAll(() => api.stop());

  const run = (...args: string[]) => runCli(["deployments", ...args, "--url", url], env);
  const create = (body: object): Promise<Wire> => ada.call("POST", "/v2/deployments", body, 201);
  const write = ({ id, tenant_id }: Wire, revision_id: string, ...messages: string[]) =>
    api.storage.write((tx) =>
      insertLogLines(
        tx,
        messages.map((message, i) => ({
          deployment_id: id,
          revision_id,
          tenant_id,
          kind: "deploy",
          level: i % 2 === 0 ? "INFO" : "ERROR",
          message,
          run_id: null,
          at: START + i,
        })),
      ),
    );
  /** What a reconciler would have made of a deployment. */
  const serves = async ({ id }: Wire, revision_id: string) => {
    await api.become(revision_id, "DEPLOYED", { artifact: "a" });
    await api.storage.write((tx) =>
      tx.run(tx.k.updateTable("deployments").set({ active_revision_id: revision_id }).where("deployment_id", "=", id)),
    );
  };

  it("list what is deployed, for people and for programs", async () => {
    expect(await run("list")).toMatchObject({ status: 0, stdout: `There are no deployments at ${url}.\n` });
    await create(empty({ name: "nothing" }));
    const serving = await create(ofImage({ name: "serving" }));
    await serves(serving, serving.latest_revision_id);
    const deleting = await create(ofImage({ name: "deleting" }));
    await ada.call("DELETE", `/v2/deployments/${deleting.id}`, undefined, 204);
    const failed = await create(ofImage({ name: "failed" }));
    await api.become(failed.latest_revision_id, "BUILD_FAILED");
    const { stdout } = await run("list");
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(rows.map(([name, state]) => [name, state])).toEqual([
      ["NAME", "STATE"],
      ["failed", "BUILD_FAILED"],
      ["deleting", "deleting"],
      ["serving", "live"],
      ["nothing", "no revisions"],
    ]);
    expect(rows[3]?.[3]).toBe(`${url}/deployments/serving`);
    const { resources } = await ada.call("GET", "/v2/deployments");
    const asked = JSON.parse((await run("list", "--json")).stdout);
    expect(asked.map(({ id }: Wire) => id)).toEqual(resources.map(({ id }: Wire) => id));
  });

  it("show the last lines of a deployment, by its name and by its id", async () => {
    const made = await create(ofImage({ name: "logs" }));
    await write(made, made.latest_revision_id, "one", "two", "three");
    const line = (i: number, level: string, message: string) =>
      `2026-01-31 12:00:00.00${i} ${level.padEnd(8)} ${message}\n`;
    for (const name of ["logs", made.id])
      expect(await run("logs", name, "--limit", "2")).toMatchObject({
        status: 0,
        stdout: line(1, "ERROR", "two") + line(2, "INFO", "three"),
      });
    expect((await run("logs", "logs", "--level", "ERROR")).stdout).toBe(line(1, "ERROR", "two"));
    expect((await run("logs", "logs", "--type", "build")).stdout).toBe("");
    const [first] = (await run("logs", "logs", "--json")).stdout.split("\n");
    expect(JSON.parse(first as string)).toMatchObject({ message: "one", timestamp: isoOfMilliseconds(START) });
  });

  it("follow a log: each line once, including late lines", async () => {
    const made = await create(ofImage({ name: "followed" }));
    await write(made, made.latest_revision_id, "one", "two", "three");
    const child = startCli(["deployments", "logs", "-f", "followed", "--limit", "2", "--url", url], { env });
    const seen: string[] = [];
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    lines.on("line", (line) => seen.push(line.split(" ").at(-1) as string));
    const until = async (message: string) => {
      while (!seen.includes(message)) await once(lines, "line");
    };
    await until("three");
    await write(made, made.latest_revision_id, "later", "late", "four", "last");
    await until("last");
    const ended = once(child, "exit");
    child.kill();
    await ended;
    // "later" has the time of "one", which was before what was asked for.
    expect(seen).toEqual(["two", "three", "late", "four", "last"]);
  });

  it("roll back to the revision that served before, and print the progress", async () => {
    const made = await create(ofImage({ name: "rolled" }));
    const first = made.latest_revision_id;
    await serves(made, first);
    expect(await run("rollback", "rolled")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("no earlier revision"),
    });
    const second = (await ada.call("POST", `/v2/deployments/${made.id}/revisions`, {}, 201)).id;
    await serves(made, second);
    expect(await run("rollback", "rolled", "--no-wait")).toMatchObject({
      status: 0,
      stdout: `Deploying revision ${first} of "rolled".\n`,
    });
    expect((await api.row(first)).status).toBe("AWAITING_DEPLOY");
    expect(await run("rollback", "rolled", second)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("in progress"),
    });
    for (const [status, code, text] of [
      ["DEPLOYED", 0, `Revision ${first} of "rolled" is live.`],
      ["DEPLOY_FAILED", 1, "was not deployed (DEPLOY_FAILED): It died."],
    ] as const) {
      await api.become(first, "DEPLOYED");
      const child = startCli(["deployments", "rollback", "rolled", "--url", url], { env });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (output += chunk));
      const ended = once(child, "exit");
      while (!output.includes("AWAITING_DEPLOY ...")) await once(child.stderr as NodeJS.ReadableStream, "data");
      await api.become(first, status, { status_message: status === "DEPLOYED" ? null : "It died." });
      expect([await ended, output]).toEqual([[code, null], expect.stringContaining(text)]);
    }
  });

  it("delete a deployment", async () => {
    const made = await create(ofImage({ name: "deleted" }));
    expect(await run("delete", "deleted")).toMatchObject({ status: 0, stdout: 'Deleting deployment "deleted".\n' });
    expect((await ada.call("GET", `/v2/deployments/${made.id}`)).status).toBe("AWAITING_DELETE");
  });

  it("print an error that states what is wrong", async () => {
    await create(ofImage({ name: "there" }));
    expect(await run("logs", "the")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('There is no deployment "the"'),
    });
    expect(await run("delete", "00000000-0000-4000-8000-000000000000")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("Not found"),
    });
    const unknown = await runCli(["deployments", "list", "--url", url, "--api-key", "wrong"], env);
    expect(unknown).toMatchObject({ status: 1, stderr: expect.stringContaining("does not accept this API key") });
  });
});
