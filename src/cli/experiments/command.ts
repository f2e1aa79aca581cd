import { type Command, InvalidArgumentError, Option } from "commander";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import {
  addOptions,
  addTargetOptions,
  JSON_OPTION,
  runCommand,
  type TargetFlags,
  targetOf,
  wholeNumber,
} from "../command.ts";
import type { ExportFlags } from "./export.ts";
import type { RunFlags } from "./run.ts";
import type { UploadFlags } from "./upload.ts";

const UPLOAD_OPTIONS = [
  new Option("--format <format>", "format of the file")
    .choices(["auto", "json", "jsonl", "csv", "lm-eval", "promptfoo"])
    .default("auto"),
  new Option("--name <experiment>", "name of the experiment (default: the name in the file, or the file name)"),
  new Option("--dataset <name>", "dataset that the rows belong to; created if it does not exist"),
  new Option("--dataset-id <id>", "ID of the dataset, instead of --dataset"),
  new Option("--description <text>", "description of the experiment"),
  new Option("--metadata <json>", "metadata of the experiment, as a JSON object").argParser(jsonObject),
  new Option("--provider <id>", "for a promptfoo file: upload only the results of this provider (ID or label)"),
  new Option("--prompt <label>", "for a promptfoo file: upload only the results of this prompt"),
  new Option("--json", "print the response of the service as JSON"),
];

const EXPORT_OPTIONS = [
  new Option("--format <format>", "format of the output (default: by the file extension, or json)").choices([
    "json",
    "jsonl",
    "csv",
  ]),
  new Option("--output <file>", "file to write (default: standard output)"),
];

const RUN_OPTIONS = [
  new Option("--dataset <name>", "dataset to run").makeOptionMandatory(),
  new Option("--assistant <id>", "assistant to run: its ID, or the name of a graph").makeOptionMandatory(),
  new Option("--evaluators <file>", "module that exports one evaluator function per feedback key"),
  new Option("--name <experiment>", "name of the experiment (default: the assistant and the time)"),
  new Option("--concurrency <n>", "maximum number of concurrent runs").default(4).argParser(wholeNumber(1, 1000)),
  new Option("--repetitions <n>", "number of runs per example").default(1).argParser(wholeNumber(1, 1000)),
  new Option("--journal <file>", "file for finished rows until the upload (default: named by dataset and assistant)"),
  JSON_OPTION,
];

/**
 * Adds `experiments upload`, `run` and `export`. Each command loads its code when it runs, so that servers do not load it.
 */
export function addExperimentCommands(program: Command): void {
  const experiments = program.command("experiments").description("run, upload and export experiments");
  const add = (name: string, description: string, options: Option[]) =>
    addTargetOptions(addOptions(experiments.command(name).description(description), options));
  add("upload", "upload results from a file: JSON, JSONL, CSV, lm-evaluation-harness or promptfoo", UPLOAD_OPTIONS)
    .argument("<file>", "file to upload")
    .action((file: string, flags: UploadFlags & TargetFlags) =>
      runCommand(async () => (await import("./upload.ts")).uploadExperiment(file, flags, targetOf(flags))),
    );
  add("run", "run an assistant on a dataset, evaluate the outputs and upload the results", RUN_OPTIONS)
    .usage("--dataset <name> --assistant <id> [options]")
    .action((flags: RunFlags & TargetFlags) =>
      runCommand(async () => (await import("./run.ts")).runExperiment(flags, targetOf(flags))),
    );
  add("export", "export an experiment to a file that can be uploaded again", EXPORT_OPTIONS)
    .argument("<experiment>", "name or ID of the experiment")
    .action((experiment: string, flags: ExportFlags & TargetFlags) =>
      runCommand(async () => (await import("./export.ts")).exportExperiment(experiment, flags, targetOf(flags))),
    );
}

function jsonObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // The error below covers invalid JSON, too.
  }
  throw new InvalidArgumentError('It must be a JSON object, such as {"model": "m1"}.');
}
