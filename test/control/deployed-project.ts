import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create } from "tar";

/**
 * A graph that tells which environment it has, prints what it is asked to, and ends its process when it is told to. Plain
 * JavaScript, and no package but those that come with the service.
 */
export const AGENT = `
import { readFileSync } from "node:fs";
import { Annotation, StateGraph } from "@langchain/langgraph";
import { AIMessage } from "@langchain/core/messages";
const State = Annotation.Root({ print: Annotation, exit: Annotation, answer: Annotation });
export const graph = new StateGraph(State)
  .addNode("node", async ({ print, exit }) => {
    for (const line of print ?? []) console.log(line);
    // Once the run is over, so that it is not tried again. On a busy machine its answer can take a second.
    if (exit !== undefined) setTimeout(() => process.kill(process.pid, "SIGKILL"), 2_000);
    const whole = readFileSync("/proc/self/environ", "utf8").split("\\0").filter(Boolean);
    return { answer: { env: { ...process.env }, whole, pid: process.pid, type: new AIMessage("").getType() } };
  })
  .addEdge("__start__", "node").addEdge("node", "__end__").compile();
`;

export const LANGGRAPH_JSON = JSON.stringify({ graphs: { agent: "./agent.mjs:graph" } });

/** The smallest source that can be deployed. */
export const PROJECT: Readonly<Record<string, string>> = { "langgraph.json": LANGGRAPH_JSON, "agent.mjs": AGENT };

export function writeFiles(folder: string, files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-deploy-"));
  // Where the tests are root, builds are other users, who read repositories here.
  chmodSync(folder, 0o755);
  return folder;
}

export interface Tarball {
  kind: "tarball";
  file: string;
  sha256: string;
}

/** A source as an upload leaves it. */
export async function packed(files: Readonly<Record<string, string>>): Promise<Tarball> {
  const folder = writeFiles(temporaryFolder(), files);
  const file = join(temporaryFolder(), "source.tar.gz");
  await create({ gzip: true, cwd: folder, file, portable: true }, ["."]);
  return tarballAt(file);
}

export const tarballAt = (file: string): Tarball => ({
  kind: "tarball",
  file,
  sha256: createHash("sha256").update(readFileSync(file)).digest("hex"),
});
