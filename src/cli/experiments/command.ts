import { type Command, InvalidArgumentError, Option } from "commander";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { addTargetOptions, type TargetFlags, targetOf, told, wholeNumber } from "../target.ts";
import type { ExportFlags } from "./export.ts";
import type { RunFlags } from "./run/run.ts";
import type { UploadFlags } from "./upload.ts";

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
  for (const option of UPLOAD_OPTIONS) upload.addOption(option);
  addTargetOptions(upload);
  upload.action((file: string, flags: UploadFlags & TargetFlags) =>
    told(async () => (await import("./upload.ts")).uploadExperiment(file, flags, targetOf(flags))),
  );
  const run = experiments
    .command("run")
    .description("try an assistant on the examples of a dataset, judge it, and upload the result")
    .usage("--dataset <name> --assistant <id> [options]");
  for (const option of RUN_OPTIONS) run.addOption(option);
  addTargetOptions(run);
  run.action((flags: RunFlags & TargetFlags) =>
    told(async () => (await import("./run/run.ts")).runExperiment(flags, targetOf(flags))),
  );
  const read = experiments
    .command("export")
    .description("write an experiment to a file that can be uploaded again")
    .argument("<experiment>", "its id or name");
  for (const option of EXPORT_OPTIONS) read.addOption(option);
  addTargetOptions(read);
  read.action((experiment: string, flags: ExportFlags & TargetFlags) =>
    told(async () => (await import("./export.ts")).exportExperiment(experiment, flags, targetOf(flags))),
  );
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
