import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { blocksIn, ROOT, read } from "./page.ts";

const page = read("docs/experiments.md");
const blocks = (language: string) => blocksIn(page, language);

describe("docs/experiments.md", () => {
  let service: TestService;
  let url: string;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
    url = await service.listen();
  });
  afterAll(() => service.stop());

  const shell = async (command: string, env: Record<string, string> = {}) => {
    const here = command.replaceAll("http://localhost:2024", url);
    const { stdout } = await promisify(execFile)("bash", ["-ec", here], { env: { ...process.env, ...env } });
    return JSON.parse(stdout);
  };

  it.skipIf(!inject("curl"))("uploads, compares and reads as it shows", async () => {
    const block = (part: string) => blocks("sh").find((code) => code.includes(part)) as string;
    const [upload, compare] = [block("upload-experiment"), block("/compare")];
    const first = await shell(upload);
    expect(first.dataset).toMatchObject({ name: "capitals", externally_managed: true });
    expect(first.experiment).toMatchObject({ name: "first try", run_count: null });
    const second = await shell(upload.replace("first try", "second try"));
    const { comparisons } = await shell(compare, {
      DATASET: first.dataset.id,
      BASELINE: first.experiment.id,
      OTHER: second.experiment.id,
    });
    expect(comparisons).toMatchObject([{ key: "correct", n_paired: 2, ties: 2 }]);

    const [client] = blocks("js") as [string];
    const script = client.replaceAll("http://localhost:2024", url);
    const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { cwd: ROOT });
    expect((await run).stdout).toContain("Paris");
  });

  it("explains every statistic and every field of a comparison", async () => {
    const response = await fetch(`${url}/api/v1/openapi.json`);
    const document = (await response.json()) as { components: { schemas: Record<string, { properties: object }> } };
    const { PairComparison, FeedbackStats } = document.components.schemas;
    const explained = new Set([...page.matchAll(/`(\w+)`/g)].map(([, name]) => name));
    const outOfPlace = ["session_id", "key", "is_lower_score_better", "contains_thread_feedback"];
    const fields = [...Object.keys(PairComparison?.properties ?? {}), ...Object.keys(FeedbackStats?.properties ?? {})];
    expect(fields.filter((name) => !explained.has(name) && !outOfPlace.includes(name))).toEqual([]);
  });
});
