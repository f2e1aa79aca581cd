import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pythonEnv } from "../compat/python-env.ts";
import { installed } from "../support/installed.ts";
import { startService, type TestService } from "../support/service.ts";
import { blocksIn, read } from "./page.ts";

const page = read("docs/tracing.md");
const [install = "", variables = "", list = ""] = blocksIn(page, "bash");

/** The page installs it itself; without a registry there is nothing to follow. */
const packages = await installed("The JavaScript client of docs/tracing.md", { langsmith: "0.10.5" });
const { python } = await pythonEnv();

const LANGUAGES = [
  { language: "ts", comment: "//", command: "node", scripts: ["trace.ts", "evaluate.ts", "compare.ts"] },
  {
    language: "python",
    comment: "#",
    command: "python",
    scripts: ["trace_answer.py", "evaluate_capitals.py", "compare_capitals.py"],
  },
];

describe.runIf(packages && python).each(LANGUAGES)(
  "docs/tracing.md in $language, followed in an empty folder",
  ({ language, comment, command, scripts }) => {
    const folder = mkdtempSync(join(tmpdir(), "threadmill-tracing-"));
    let service: TestService;
    let url: string;
    beforeAll(async () => {
      service = await startService({ database: "sqlite", config: "examples/langgraph.json", env: { API_KEYS: "" } });
      url = await service.listen();
      for (const block of blocksIn(page, language)) {
        const [first = "", ...rest] = block.split("\n");
        if (first.startsWith(comment)) writeFileSync(join(folder, first.slice(comment.length + 1)), rest.join("\n"));
      }
      const [step = ""] = install.split("\n").filter((line) => line.startsWith(language === "ts" ? "npm" : "python"));
      await shell(step);
    });
    afterAll(async () => {
      await service.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const shell = async (text: string): Promise<string> => {
      const PATH = [dirname(python as string), dirname(process.execPath), process.env.PATH].join(":");
      const { stdout } = await promisify(execFile)("bash", ["-ec", text.replaceAll("http://localhost:2024", url)], {
        cwd: folder,
        env: { ...process.env, PATH, NODE_NO_WARNINGS: "1" },
      });
      return stdout;
    };

    it("traces a program, evaluates two functions, and compares them as the page says", async () => {
      const [trace, evaluate, compare] = scripts as [string, string, string];
      expect(page).toContain(`\`${command} ${trace}\``);
      expect(await shell(`${variables}\n${command} ${trace}`)).toBe("a page about tides\n");
      const { runs } = JSON.parse(await shell(`${variables}\n${list}`));
      expect(runs).toMatchObject([{ name: "search", run_type: "tool" }, { name: "answer" }]);
      expect(runs[0].parent_run_id).toBeTruthy();
      await shell(`${variables}\n${command} ${evaluate}`);
      const [, promised] = /Both print `([^`]+)`/.exec(page) ?? [];
      expect((await shell(`${variables}\n${command} ${compare}`)).replace("p = 1.0", "p = 1")).toBe(`${promised}\n`);
    });
  },
);
