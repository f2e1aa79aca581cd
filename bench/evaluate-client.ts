/** Evaluates a function on the dataset in argv, and prints the seconds until everything was sent. */
import { RunTree } from "langsmith";
import { evaluate } from "langsmith/evaluation";
import { traceable } from "langsmith/traceable";

type Answer = { answer?: number };

const client = RunTree.getSharedClient();
const step = traceable(async (n: number) => 2 * n, { name: "step", run_type: "tool" });
const print = (text: string) => process.stdout.write(`${text}\n`);
console.log = () => undefined;
const started_at = performance.now();
await evaluate(async ({ n }: { n: number }) => ({ answer: await step(n) }), {
  data: process.argv[2] as string,
  evaluators: [
    ({ outputs, referenceOutputs }: { outputs: Answer; referenceOutputs?: Answer }) => ({
      key: "correct",
      score: outputs?.answer === referenceOutputs?.answer,
    }),
  ],
  maxConcurrency: 8,
});
await client.awaitPendingTraceBatches();
print(String((performance.now() - started_at) / 1000));
