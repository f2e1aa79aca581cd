import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { graphsIn, language } from "../support/language.ts";
import { startService } from "../support/service.ts";
import { openOn } from "../support/storage.ts";
import { type Api, inProcess } from "./api.ts";
import { type Command, command, ROWS, sequenceOf } from "./commands.ts";
import { unknownViolations } from "./known.ts";
import { IMPOSSIBLE, Met } from "./met.ts";
import { Sequence } from "./sequence.ts";
import { Verdict } from "./verdict.ts";

const SEQUENCES = COUNTS.model_sequences;
/** Sequences that are carried out at the same time: most of the time of each is waiting. */
const AT_ONCE = 24;
/** With fewer sequences it is chance which pairs are met. */
const ENOUGH = 200;
const SETTINGS = { THREADMILL_CANCEL_GRACE: "150ms", BG_JOB_TIMEOUT_SECS: "1.5" };

describe.each(searchedDatabases)(`random sequences of ${language} graphs on %s`, (name) => {
  it(
    `agree with the model (${SEQUENCES} of them, seed ${SEED}; MODEL_SEQUENCES and SEED change it)`,
    async () => {
      const graphs = await graphsIn("model");
      const service = await startService({
        inline: false,
        database: name,
        config: graphs.config,
        env: { ...graphs.env, ...SETTINGS },
      });
      const database = openOn(service.database);
      // The verdicts look for rows of a run: without these, 2,000 sequences read 100,000 rows several times each.
      for (const table of ["checkpoints", "checkpoint_values", "checkpoint_writes"])
        await database.write((tx) => tx.run(sql.raw(`create index model_${table} on ${table} (run_id)`).compile(tx.k)));
      const folder = mkdtempSync(join(tmpdir(), "threadmill-model-"));
      const api = inProcess(service.threadmill);
      // While graphs are being loaded, the time of the runs that wait for them goes by.
      await api.send("POST", "/runs/wait", { assistant_id: "work", input: { items: [], token: "w", kind: "chain" } });
      const bulk = await hasBulkCancel(api);
      const met = new Met();
      let doors = 0;
      const carryOut = async (commands: readonly Command[]): Promise<void> => {
        const sequence = new Sequence({ api, met, bulk, doors: join(folder, String(++doors)) });
        try {
          await inTime(sequence.run(commands));
          for (const thread of sequence.ledger.threads) await new Verdict(api, database).on(thread);
        } catch (error) {
          throw new Error(`${(error as Error).stack}\n${sequence.ledger.log.join("\n")}`);
        }
      };
      try {
        const failed = await firstFailure(carryOut);
        if (failed) expect.fail(await describeFailure(failed, carryOut));
        console.log(`${language}, ${name}: ${SEQUENCES} sequences, seed ${SEED}\n${met}`);
        expect(await unknownViolations(database)).toEqual([]);
        const rows = ROWS.filter((row) => bulk || !row.startsWith("bulk"));
        if (SEQUENCES >= ENOUGH) expect(met.missing(rows)).toEqual([]);
        console.log(`Pairs that cannot occur: ${JSON.stringify(IMPOSSIBLE)}${bulk ? "" : "; no bulk cancel here"}`);
      } finally {
        await database.close();
        await service.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    },
    300_000 + SEQUENCES * 2_000,
  );
});

/** Every run has an end; a sequence that waits for longer than this waits for one that never comes. */
const MAX_MS = 120_000;

async function inTime(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`It did not come to rest within ${MAX_MS} ms.`)), MAX_MS);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

interface Failure {
  n: number;
  error: Error;
}

/** Carries the sequences out, many at a time; the first that fails stops the others from beginning. */
async function firstFailure(carryOut: (commands: Command[]) => Promise<void>): Promise<Failure | undefined> {
  let next = 0;
  let failed: Failure | undefined;
  const work = async () => {
    while (next < SEQUENCES && !failed) {
      const n = next++;
      await carryOut(sequenceOf(SEED, n)).catch((error) => {
        failed ??= { n, error };
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failed;
}

/** Looks for a shorter sequence that fails, for as long as that takes a minute; the order of events is not repeated. */
async function describeFailure({ n, error }: Failure, carryOut: (commands: Command[]) => Promise<void>) {
  const shorter = fc.array(command, { minLength: 1, maxLength: 40 });
  const found = await fc.check(fc.asyncProperty(shorter, carryOut), {
    examples: [[sequenceOf(SEED, n)]],
    numRuns: 1,
    interruptAfterTimeLimit: 60_000,
  });
  const shrunk = found.counterexample
    ? `Shrunk ${found.numShrinks} times to\n${found.counterexample[0]?.map((one) => JSON.stringify(one)).join("\n")}\n${found.errorInstance}`
    : "It did not fail again.";
  return `Sequence ${n} of seed ${SEED} failed: ${error.message}\n\n${shrunk}`;
}

async function hasBulkCancel(api: Api): Promise<boolean> {
  const { body } = await api.send("GET", "/openapi.json");
  return body?.paths["/runs/cancel"] !== undefined;
}
