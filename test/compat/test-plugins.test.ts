import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { installed } from "../support/installed.ts";
import { startService, type TestService } from "../support/service.ts";
import { langsmithEnv } from "./evaluate-env.ts";
import { pythonEnv } from "./python-env.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type Anything = any;

const PYTEST = `
import pytest
from langsmith import testing as t

@pytest.mark.langsmith(split="smoke", metadata={"kind": "sum"})
@pytest.mark.parametrize("a", [1, 2])
def test_sum(a):
    t.log_inputs({"a": a})
    t.log_reference_outputs({"sum": a + 1})
    t.log_outputs({"sum": 2})
    t.log_feedback(key="close", score=0.5)
    assert a + 1 == 2

@pytest.mark.langsmith
def test_plain():
    t.log_inputs({"plain": True})
    t.log_outputs({"ok": True})
`;

const JEST = `
const ls = require("langsmith/jest");

ls.describe(process.env.SUITE_NAME, () => {
  ls.test.each([
    { inputs: { a: 1 }, referenceOutputs: { sum: 2 }, split: "smoke", metadata: { kind: "sum" } },
    { inputs: { a: 2 }, referenceOutputs: { sum: 3 }, split: "smoke", metadata: { kind: "sum" } },
  ])("sums", async ({ inputs }) => {
    ls.logOutputs({ sum: 2 });
    ls.logFeedback({ key: "close", score: 0.5 });
    expect(inputs.a + 1).toBe(2);
  });
  ls.test("plain", { inputs: { plain: true } }, async () => {
    ls.logOutputs({ ok: true });
  });
});
`;

const VITEST = JEST.replace(
  'const ls = require("langsmith/jest");',
  'import * as ls from "langsmith/vitest";\nimport { expect } from "vitest";',
);

const MODULES = join(import.meta.dirname, "../../node_modules");

const { python } = await pythonEnv();
const jest = await installed("The integration with Jest", { jest: "30.1.3", langsmith: "0.10.5" });

/** Unmodified projects, which find the server by its address and key. */
describe("the official plugins of test runners", () => {
  let service: TestService;
  let folder: string;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json" });
  });
  afterAll(() => service.stop());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "threadmill-plugins-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder }).toString().trim();
  /** @returns the commit of the folder */
  const commit = () => {
    git("init", "--quiet", "--initial-branch=main");
    git(
      "-c",
      "user.name=Test",
      "-c",
      "user.email=test@example.com",
      "commit",
      "--quiet",
      "--allow-empty",
      "-m",
      "First",
    );
    return git("rev-parse", "HEAD");
  };
  const run = async (command: string, args: string[], env: Record<string, string>) => {
    const child = spawn(command, args, {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        ...langsmithEnv(await service.listen()),
        VITEST: "",
        NO_COLOR: "1",
        GIT_CEILING_DIRECTORIES: tmpdir(),
        ...env,
      },
      timeout: 100_000,
    });
    const printed = await Promise.all([text(child.stdout), text(child.stderr)]);
    return printed.join("\n");
  };

  type Runner = (suite: string) => Promise<string>;
  const withPytest: Runner = (suite) => {
    writeFileSync(join(folder, "test_suite.py"), PYTEST);
    return run(python as string, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py"], {
      LANGSMITH_TEST_SUITE: suite,
    });
  };
  const withJest: Runner = (suite) => {
    writeFileSync(join(folder, "suite.eval.js"), JEST);
    writeFileSync(
      join(folder, "jest.config.js"),
      'module.exports = { testMatch: ["**/*.eval.js"], reporters: ["langsmith/jest/reporter"] };',
    );
    symlinkSync(jest as string, join(folder, "node_modules"));
    return run(process.execPath, [join(jest as string, "jest/bin/jest.js"), "--rootDir", folder], {
      SUITE_NAME: suite,
    });
  };
  // Without the reporter of the client, which needs an older Vitest.
  const withVitest: Runner = (suite) => {
    writeFileSync(join(folder, "suite.eval.mjs"), VITEST);
    writeFileSync(join(folder, "vitest.config.mjs"), 'export default { test: { include: ["*.eval.mjs"] } };');
    symlinkSync(MODULES, join(folder, "node_modules"));
    return run(process.execPath, [join(MODULES, "vitest/vitest.mjs"), "run"], { SUITE_NAME: suite });
  };

  const get = async (path: string): Promise<Anything> => (await service.request("GET", `/api/v1${path}`)).body;
  /** The dataset of a suite, and its experiments, the first one first. */
  const read = async (suite: string) => {
    const [dataset] = await get(`/datasets?name=${encodeURIComponent(suite)}`);
    const sessions = await get(
      `/sessions?reference_dataset=${dataset.id}&include_stats=true&sort_by=start_time&sort_by_desc=false`,
    );
    return { dataset, sessions };
  };
  const expectScores = (session: Anything) =>
    expect(session).toMatchObject({
      run_count: 3,
      error_rate: expect.closeTo(1 / 3),
      feedback_stats: { pass: { n: 3, avg: expect.closeTo(2 / 3) }, close: { n: 2, avg: 0.5 } },
    });

  const RUNNERS: [name: string, runner: Runner, isInstalled: boolean][] = [
    ["pytest", withPytest, python !== undefined],
    ["jest", withJest, jest !== undefined],
    ["vitest", withVitest, true],
  ];

  describe.each(RUNNERS)("%s", (_, runner, isInstalled) => {
    it.skipIf(!isInstalled)("stores an experiment each time, and tags its version with the commit", async () => {
      const suite = `suite ${randomUUID()}`;
      const tag = `git:commit:${commit()}`;
      const printed = await runner(suite);
      expect(printed).not.toMatch(/Failed to |LangSmith\w*Error|HTTPError/);
      const first = await read(suite);
      expect(first.sessions).toHaveLength(1);
      expectScores(first.sessions[0]);
      expect(first.sessions[0].extra.metadata).toMatchObject({ dataset_version: expect.any(String) });
      const [tagged] = await get(`/datasets/${first.dataset.id}/tags`);
      expect(tagged.tags).toEqual(expect.arrayContaining(["latest", tag]));
      rmSync(join(folder, "node_modules"), { force: true });
      expect(await runner(suite)).not.toMatch(/Failed to |LangSmith\w*Error|HTTPError|KeyError/);
      const { dataset, sessions } = await read(suite);
      expect(sessions).toHaveLength(2);
      expectScores(sessions[1]);
      expect(dataset.example_count).toBe(3);
      expect(await get(`/datasets/${dataset.id}/splits`)).toEqual(["base", "smoke"]);
      const body = { session_ids: sessions.map(({ id }: Anything) => id) };
      const rows = (await service.request("POST", `/api/v1/datasets/${dataset.id}/runs`, body)).body;
      expect(rows.map(({ runs }: Anything) => runs.length)).toEqual([2, 2, 2]);
    });

    it.skipIf(!isInstalled)("stores an experiment outside of a repository", async () => {
      const suite = `suite ${randomUUID()}`;
      expect(await runner(suite)).not.toMatch(/Failed to |LangSmith\w*Error|HTTPError/);
      const { dataset, sessions } = await read(suite);
      expectScores(sessions[0]);
      expect(await get(`/datasets/${dataset.id}/tags`)).toEqual([]);
    });
  });
});
