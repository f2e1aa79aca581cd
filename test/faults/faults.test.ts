import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { COUNTS, SEED } from "../support/counts.ts";
import { play } from "./play.ts";
import { hasPostgresServer } from "./postgres-server.ts";

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = join(ROOT, "node_modules/.cache/threadmill-tests");
/** In CI a fault is played once or twice and nothing is timed, as other suites share the cores. */
const isLong = COUNTS.faults > 1;

const check = (file: string, flags: string[] = []) =>
  spawnSync(process.execPath, [join(import.meta.dirname, "check.ts"), file, ...flags], { encoding: "utf8" });

describe("three processes on a Postgres of their own", () => {
  it.runIf(hasPostgresServer())(
    `lose no run and end none twice, whatever fails (seed ${SEED}; FAULTS and SEED change it)`,
    { timeout: 300_000 + COUNTS.faults * 120_000 },
    async () => {
      const file = join(FOLDER, `faults-${SEED}.jsonl`);
      mkdirSync(FOLDER, { recursive: true });
      rmSync(file, { force: true });
      const counts = {
        freezes: 2 * COUNTS.faults,
        kills: 3 * COUNTS.faults,
        cuts: isLong ? 3 : 1,
        swallowed_ms: isLong ? 30_000 : 8_000,
        restarts: COUNTS.faults,
        few_ms: isLong ? 30_000 : 4_000,
        innocents: isLong ? 120 : 16,
        burners: isLong ? 18 : 0,
      };
      await play(counts, { seed: SEED, file });
      const { status, stdout, stderr } = check(file, isLong ? ["--times"] : []);
      console.log(`${stdout}${stderr}history: ${file}`);
      expect(status).toBe(0);

      // The check notices what it is there for.
      const history = readFileSync(file, "utf8");
      for (const [found, replacement] of [
        [/^.*"kind":"row".*\n/m, ""],
        [/"status":"success"/, '"status":"error"'],
        [/("kind":"told".*"steps":)\[0,/, "$1[0,0,"],
        [/^.*"kind":"step".*\n/m, "$&$&"],
      ] as const) {
        const changed = `${file}.changed`;
        writeFileSync(changed, history.replace(found, replacement));
        expect([found, check(changed).status]).toEqual([found, 1]);
        rmSync(changed);
      }
    },
  );
});
