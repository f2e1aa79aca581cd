import { type Command, InvalidArgumentError, Option } from "commander";
import { isObject, type JsonObject } from "../../lib/json.ts";
import type { Target } from "./api.ts";
import { CommandError } from "./command-error.ts";
import type { ExportFlags } from "./export.ts";
import type { RunFlags } from "./run/run.ts";
import type { UploadFlags } from "./upload.ts";

interface TargetFlags {
  url: string;
  apiKey?: string;
}

const TARGET_OPTIONS = [
  new Option("--url <url>", "address of the service").default("http://127.0.0.1:2024").argParser(serviceUrl),
  new Option("--api-key <key>", "key of the service (or THREADMILL_API_KEY, or LANGSMITH_API_KEY)"),
];

const UPLOAD_OPTIONS = [
  new Option("--format <format>", "what the file is")
    .choices(["auto", "json", "jsonl", "csv", "lm-eval", "promptfoo"])
    .default("auto"),
  new Option("--name <experiment>", "name of the experiment (default: what the file says, or its name)"),
  new Option("--dataset <name>", "name of the dataset that the rows belong to; made when there is none"),
  new Option("--dataset-id <id>", "the same by its id"),
  new Option("--description <text>", "description of the experiment"),
  new Option("--metadata <json>", "metadata of the experiment, a JSON object").argParser(jsonObject),
  new Option("--provider <id>", "of a promptfoo file: which provider"),
  new Option("--prompt <label>", "of a promptfoo file: which prompt"),
  new Option("--json", "print the answer of the service"),
];

const EXPORT_OPTIONS = [
  new Option("--format <format>", "json, jsonl or csv (default: by the file's extension, or json)").choices([
    "json",
    "jsonl",
    "csv",
  ]),
  new Option("--output <file>", "write there (default: standard output)"),
];

const RUN_OPTIONS = [
  new Option("--dataset <name>", "the dataset whose examples are tried").makeOptionMandatory(),
  new Option("--assistant <id>", "the assistant that tries them: its id, or the name of a graph").makeOptionMandatory(),
  new Option("--evaluators <file>", "a module that exports a function for each feedback key"),
  new Option("--name <experiment>", "name of the experiment (default: the assistant and the time)"),
  new Option("--concurrency <n>", "runs at a time").default(4).argParser(wholeNumber(1, 1000)),
  new Option("--repetitions <n>", "how often each example is tried").default(1).argParser(wholeNumber(1, 1000)),
  new Option("--journal <file>", "where finished rows are kept until all are done (default: by dataset and assistant)"),
  new Option("--json", "print the answer of the service"),
];

/** Adds `experiments upload`, `experiments run` and `experiments export`. What they do is loaded when it is needed: servers never do. */
export function addExperimentCommands(program: Command): void {
  const experiments = program
    .command("experiments")
    .description("run experiments, upload their results, and read them back");
  const upload = experiments
    .command("upload")
    .description("store the results in a file: JSON, JSONL, CSV, lm-evaluation-harness or promptfoo")
    .argument("<file>", "the file");
  for (const option of [...UPLOAD_OPTIONS, ...TARGET_OPTIONS]) upload.addOption(option);
  upload.action((file: string, flags: UploadFlags & TargetFlags) =>
    told(async () => (await import("./upload.ts")).uploadExperiment(file, flags, targetOf(flags))),
  );
  const run = experiments
    .command("run")
    .description("try an assistant on the examples of a dataset, judge it, and upload the result")
    .usage("--dataset <name> --assistant <id> [options]");
  for (const option of [...RUN_OPTIONS, ...TARGET_OPTIONS]) run.addOption(option);
  run.action((flags: RunFlags & TargetFlags) =>
    told(async () => (await import("./run/run.ts")).runExperiment(flags, targetOf(flags))),
  );
  const read = experiments
    .command("export")
    .description("write an experiment to a file that can be uploaded again")
    .argument("<experiment>", "its id or name");
  for (const option of [...EXPORT_OPTIONS, ...TARGET_OPTIONS]) read.addOption(option);
  read.action((experiment: string, flags: ExportFlags & TargetFlags) =>
    told(async () => (await import("./export.ts")).exportExperiment(experiment, flags, targetOf(flags))),
  );
}

/** Says what went wrong, without a stack where it is not a mistake of ours. */
async function told(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}

const targetOf = ({ url, apiKey }: TargetFlags): Target => ({
  url,
  api_key: apiKey || process.env.THREADMILL_API_KEY || process.env.LANGSMITH_API_KEY || undefined,
});

/** The address without what comes after the service's root, which clients of the API are given with it. */
function serviceUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError("It must look like http://127.0.0.1:2024.");
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const n = Number(text);
    if (/^\d+$/.test(text) && n >= least && n <= most) return n;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

function jsonObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('It must be a JSON object, such as {"model": "m1"}.');
}
