import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { SUITES, type Suite } from "./test/suites.ts";
import { findChromium, findCurl, findPostgres, findPython } from "./test/support/found.ts";
import { SlowFiles } from "./test/support/slow-files.ts";

// The worker threads of a service import its modules again: compiled ones save half of that time, a fifth of the suites of experiments.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/threadmill-tests/compiled");

/** The same in each process of this run. */
process.env.SEED ??= String(Date.now() % 1_000_000);
const { SEED } = process.env;

/**
 * `vitest run` is `npm test`. `--mode all` runs everything on everything that is there, `--mode rest` what that has more than
 * `npm test` (for CI, which runs both).
 */
export default defineConfig(async ({ mode }) => {
  const isAll = mode === "all" || mode === "rest";
  const postgres = await findPostgres();
  const chromium = findChromium();
  const curl = findCurl();
  const python = await findPython();
  const project = ([
    name,
    {
      include,
      exclude = [],
      database,
      language = "js",
      encrypts = false,
      isolate = false,
      measures = false,
      pool = "forks",
    },
  ]: [string, Suite]) => ({
    // Hosts on the serving thread load graphs by way of Vite here, which asks no hook of Node's.
    resolve: {
      alias: { "threadmill/graph": join(import.meta.dirname, "src/agent-server/graph-hosts/author/get-token.ts") },
    },
    test: {
      name,
      include,
      exclude,
      pool,
      execArgv: ["--import", join(import.meta.dirname, "test/support/bundled-threads.ts")],
      isolate,
      ...(measures && { maxWorkers: 1, sequence: { groupOrder: 1 } }),
      // A machine of CI may take three times as long as a desk.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 20_000 } },
      provide: { postgres, chromium, curl, databases: databasesOf(database, postgres), language, encrypts },
      globalSetup: [
        ...(database === "sqlite" ? [] : ["test/support/postgres-template.ts"]),
        ...(language === "python" || encrypts ? ["test/support/python-environment.ts"] : []),
      ],
    },
  });
  const notes = [
    ...(postgres ? [] : [NO_POSTGRES]),
    ...(isAll && !chromium ? [NO_CHROMIUM] : []),
    ...(curl ? [] : [NO_CURL]),
    ...(isAll && !python ? [NO_PYTHON] : []),
    ...(isAll && postgres ? [`SEED=${SEED} selects the database of: ${EITHER}.`] : []),
    ...(isAll ? [] : [`Not run: ${names("rest")}. "npm run test:all" runs them, too.`]),
  ];
  const chosen = Object.entries(SUITES).filter(([, { runs, database, language, encrypts }]) => {
    if (database === "postgres" && !postgres) return false;
    if ((language === "python" || encrypts) && !python) return false;
    return mode === "all" || (mode === "rest" ? runs === "rest" : runs === "always");
  });
  return {
    test: {
      maxWorkers: WORKERS,
      globalSetup: ["test/support/program.ts", ...(isAll ? ["test/support/pages.ts"] : [])],
      projects: chosen.map(project),
      sequence: { sequencer: LongSuitesFirst },
      reporters: [
        "default",
        new SlowFiles({ max_share: isAll || !process.env.CI ? undefined : MAX_FILE_SHARE, notes }),
      ],
    },
  };
});

/**
 * For two cores. Files wait for processes and timers a third of the time: 4 instead of 3 make `npm test` 277 s instead of 302 s, and the
 * suites of faults 250 s instead of 300 s.
 */
const WORKERS = 4;

/** If files that take minutes were the last, a single worker would be busy with them at the end. */
class LongSuitesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const order = Object.keys(SUITES).toReversed();
    return sorted.toSorted((a, b) => order.indexOf(a.project.name) - order.indexOf(b.project.name));
  }
}

/** A share, because machines differ by a factor of two: 20 s where all files together take 650 s, which is 4 minutes with three at a time. */
const MAX_FILE_SHARE = 0.03;

const NO_POSTGRES =
  "Not run: suites on Postgres. Start one at 127.0.0.1:5432 whose user postgres may create databases, or set TEST_DATABASE_URL.";
const NO_CURL = "Not run: commands of the documentation. Install curl and bash (Debian: apt install curl).";
const NO_CHROMIUM = "Not run: suites of the web app. Install Chromium (Debian: apt install chromium-headless-shell).";
const NO_PYTHON = "Not run: suites of Python graphs. Install Python 3.11 or later as python3, with its venv module.";

const EITHER = Object.entries(SUITES)
  .filter(([, { database }]) => database === "either")
  .map(([name]) => name)
  .join(", ");

const names = (runs: Suite["runs"]): string =>
  Object.entries(SUITES)
    .filter(([, suite]) => suite.runs === runs)
    .map(([name]) => name)
    .join(", ");

const databasesOf = (database: Suite["database"], postgres: string): ("sqlite" | "postgres")[] => {
  if (database === "sqlite" || database === "postgres") return [database];
  if (!postgres) return ["sqlite"];
  const isLong = ["CRASH_KILLS", "RECONNECTS", "HOST_KILLS", "MODEL_SEQUENCES", "FUZZ_REQUESTS"].some(
    (name) => process.env[name] !== undefined,
  );
  return database === "both" || isLong ? ["sqlite", "postgres"] : [Number(SEED) % 2 === 0 ? "sqlite" : "postgres"];
};
