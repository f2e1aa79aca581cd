import { type Command, InvalidArgumentError, Option } from "commander";
import { isObject, type JsonObject, jsonOrUndefined } from "../../platform/lib/json/json.ts";
import { addServiceCommand, JSON_OPTION, serviceAction, wholeNumber } from "../command.ts";

const UPLOAD_OPTIONS = [
  new Option("--format <format>", "file format")
    .choices(["auto", "json", "jsonl", "csv", "lm-eval", "promptfoo"])
    .default("auto"),
  new Option("--name <experiment>", "experiment name (default: the name in the file, or the file name)"),
  new Option("--dataset <name>", "dataset name; the dataset is created if it does not exist"),
  new Option("--dataset-id <id>", "dataset ID, instead of --dataset"),
  new Option("--description <text>", "experiment description"),
  new Option("--metadata <json>", "experiment metadata, as a JSON object").argParser(jsonObject),
  new Option("--provider <id>", "for a promptfoo file: upload only this provider's results (ID or label)"),
  new Option(
    "--prompt <label>",
    "for a promptfoo file: upload only this prompt's results (label, or beginning of the prompt text)",
  ),
  new Option("--json", "print the service's response as JSON"),
];

const EXPORT_OPTIONS = [
  new Option("--format <format>", "output format (default: derived from the file extension, or json)").choices([
    "json",
    "jsonl",
    "csv",
  ]),
  new Option("--output <file>", "file to write (default: standard output)"),
];

const RUN_OPTIONS = [
  new Option("--dataset <name>", "dataset to run the assistant on").makeOptionMandatory(),
  new Option("--assistant <id>", "assistant to run: its ID, or a graph name").makeOptionMandatory(),
  new Option("--evaluators <file>", "module that exports one evaluator function per feedback key"),
  new Option("--name <experiment>", "experiment name (default: assistant name and current time)"),
  new Option("--concurrency <n>", "maximum number of concurrent runs").default(4).argParser(wholeNumber(1, 1000)),
  new Option("--repetitions <n>", "number of runs per example").default(1).argParser(wholeNumber(1, 1000)),
  new Option(
    "--journal <file>",
    "file that stores finished rows until the upload (default: named after the dataset and assistant)",
  ),
  JSON_OPTION,
];

export function addExperimentCommands(program: Command): void {
  const experiments = program.command("experiments").description("run, upload and export experiments");
  const upload = "upload results from a file: JSON, JSONL, CSV, lm-evaluation-harness or promptfoo";
  addServiceCommand(experiments, "upload", upload, UPLOAD_OPTIONS)
    .argument("<file>", "file to upload")
    .action(serviceAction(async () => (await import("./upload.ts")).uploadExperiment));
  const run = "run an assistant on a dataset, evaluate the outputs and upload the results";
  addServiceCommand(experiments, "run", run, RUN_OPTIONS)
    .usage("--dataset <name> --assistant <id> [options]")
    .action(serviceAction(async () => (await import("./run.ts")).runExperiment));
  addServiceCommand(experiments, "export", "export an experiment to a file that can be uploaded again", EXPORT_OPTIONS)
    .argument("<experiment>", "experiment name or ID")
    .action(serviceAction(async () => (await import("./export.ts")).exportExperiment));
}

function jsonObject(text: string): JsonObject {
  const value = jsonOrUndefined(text);
  if (isObject(value)) return value;
  throw new InvalidArgumentError('It must be a JSON object, such as {"model": "m1"}.');
}
