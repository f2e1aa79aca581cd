import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installed } from "../support/installed.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { parseSse } from "../support/sse.ts";
import { blocksIn, read } from "./page.ts";

interface State {
  next: string[];
  checkpoint: object;
}

const section =
  read("docs/graphs.md")
    .split(/^## /m)
    .find((part) => part.startsWith("Your own project\n")) ?? "";

/** The block installs them itself; without a registry there is nothing to follow. */
const packages = await installed("The project of docs/graphs.md", {
  "@langchain/langgraph": "1.7.3",
  "@langchain/core": "1.4.0",
});

describe.runIf(packages)("the project of docs/graphs.md, followed in an empty folder", () => {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-readme-"));
  let server: ServerProcess;
  beforeAll(async () => {
    const [config = ""] = blocksIn(section, "json");
    writeFileSync(join(folder, "langgraph.json"), config);
    for (const block of blocksIn(section, "ts")) {
      const [, file = ""] = /^\/\/ (\S+)\n/.exec(block) ?? [];
      writeFileSync(join(folder, file), block);
    }
    const [install = ""] = blocksIn(section, "sh");
    await promisify(execFile)("bash", ["-ec", install], { cwd: folder });
    const where = { config: join(folder, "langgraph.json"), data: join(folder, ".threadmill"), port: await freePort() };
    server = await startProcess({ ...where, command: "dev" });
  });
  afterAll(async () => {
    server?.child.kill("SIGTERM");
    await server?.ended;
    rmSync(folder, { recursive: true, force: true });
  });

  const post = (path: string, body: object) =>
    fetch(`${server.url}${path}`, { method: "POST", body: JSON.stringify(body) });
  const send = async (path: string, body: object) => (await post(path, body)).json() as Promise<Record<string, never>>;

  it.each(["agent", "built"])(
    "%s asks, continues after the answer, streams messages, and forks",
    async (assistant_id) => {
      const { thread_id } = await send("/threads", {});
      const input = { messages: [{ role: "user", content: "hello" }] };
      const asked = await send(`/threads/${thread_id}/runs/wait`, { assistant_id, input });
      expect(asked.__interrupt__).toMatchObject([{ value: "What is your name?" }]);

      const resumed = { assistant_id, command: { resume: "Ada" }, stream_mode: "messages" };
      const events = parseSse(await (await post(`/threads/${thread_id}/runs/stream`, resumed)).text());
      const complete = events.filter(({ event }) => event === "messages/complete").flatMap(({ data }) => data);
      expect(complete).toMatchObject([{ type: "human" }, { type: "ai", content: "Hello, Ada!" }]);

      const history = (await (await fetch(`${server.url}/threads/${thread_id}/history`)).json()) as State[];
      const { checkpoint } = history.find(({ next }) => next[0] === "greet") ?? {};
      const again = await send(`/threads/${thread_id}/runs/wait`, { assistant_id, checkpoint, input: null });
      expect(again.__interrupt__).toMatchObject([{ value: "What is your name?" }]);
      const other = await send(`/threads/${thread_id}/runs/wait`, { assistant_id, command: { resume: "Bob" } });
      expect(other.messages).toMatchObject([{ type: "human" }, { type: "ai", content: "Hello, Bob!" }]);
    },
  );
});
