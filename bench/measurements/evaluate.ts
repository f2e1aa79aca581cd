import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { pythonEnv } from "../../test/compat/python-env.ts";
import type { Measurement, Values } from "../measurement.ts";
import { startServer } from "../servers.ts";
import { type Server, serverOf } from "../target.ts";

const BENCH = join(import.meta.dirname, "..");
const DATASET = "evaluate";
const ROUNDS = 3;
const PAGE = 500;

/** `evaluate()` of both clients, side by side with a server that discards everything. */
export const evaluate: Measurement = {
  name: "evaluate",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "evaluate_js_s", label: "evaluate() over 1,000 examples, JavaScript: s" },
    {
      key: "evaluate_js_ratio",
      label: "... time relative to a server that discards everything",
      goal: { against: "itself", max: 1.2 },
    },
    { key: "evaluate_python_s", label: "evaluate() over 1,000 examples, Python: s" },
    {
      key: "evaluate_python_ratio",
      label: "... time relative to a server that discards everything",
      goal: { against: "itself", max: 1.2 },
    },
  ],
  async measure(start, { evaluate_examples }) {
    await using target = await start();
    const server = serverOf(target);
    await createDataset(server, evaluate_examples);
    const url = `http://127.0.0.1:${server.port}`;
    const command = (port: number) => [join(BENCH, "discarding-server.ts"), String(port), url];
    const discarding = await startServer(command, BENCH);
    try {
      const urls = { stored: url, discarded: `http://127.0.0.1:${discarding.port}` };
      const { python } = await pythonEnv();
      return {
        ...(await measureClient("js", [process.execPath, join(BENCH, "evaluate-client.ts")], urls)),
        ...(python && (await measureClient("python", [python, "-B", join(BENCH, "evaluate_client.py")], urls))),
      };
    } finally {
      await discarding.stop();
    }
  },
};

async function createDataset(server: Server, count: number): Promise<void> {
  const { id } = JSON.parse(await server.send("POST", "/api/v1/datasets", { body: { name: DATASET } }));
  for (let from = 0; from < count; from += PAGE) {
    const length = Math.min(PAGE, count - from);
    const body = Array.from({ length }, (_, n) => ({
      dataset_id: id,
      inputs: { n: from + n },
      outputs: { answer: 2 * (from + n) },
    }));
    await server.send("POST", "/api/v1/examples/bulk", { body });
  }
}

/** The median of the rounds, which alternate between the servers. The first round of each fills caches and does not count. */
async function measureClient(
  name: string,
  command: string[],
  { stored, discarded }: Record<"stored" | "discarded", string>,
): Promise<Values> {
  const times = { stored: [] as number[], discarded: [] as number[] };
  for (let round = 0; round <= ROUNDS; round++) {
    const took = { stored: await run(command, stored), discarded: await run(command, discarded) };
    if (round === 0) continue;
    times.stored.push(took.stored);
    times.discarded.push(took.discarded);
  }
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
  const seconds = median(times.stored);
  return { [`evaluate_${name}_s`]: seconds, [`evaluate_${name}_ratio`]: seconds / median(times.discarded) };
}

async function run([file, ...args]: string[], url: string): Promise<number> {
  const env = {
    ...process.env,
    LANGSMITH_ENDPOINT: `${url}/api/v1`,
    LANGSMITH_API_KEY: "any",
    LANGSMITH_TRACING: "true",
  };
  const { stdout } = await promisify(execFile)(file as string, [...args, DATASET], { env });
  return Number(stdout);
}
