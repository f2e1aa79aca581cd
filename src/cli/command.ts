import { type Command, InvalidArgumentError, Option } from "commander";

/** The reason why a command failed. It is printed without a stack trace. */
export class CommandError extends Error {}

export interface Target {
  /** Without a trailing slash. */
  url: string;
  api_key?: string;
}

export const JSON_OPTION = new Option("--json", "print the result as JSON");

export const WAIT_OPTIONS = [
  new Option("--no-wait", "return without waiting for the revision to serve traffic"),
  new Option("--timeout <seconds>", "maximum time to wait for the revision")
    .default(900)
    .argParser(wholeNumber(1, 86_400)),
];

const TARGET_OPTIONS = [
  new Option("--url <url>", "service address").default("http://127.0.0.1:2024").argParser(serviceUrl),
  new Option("--api-key <key>", "API key (or THREADMILL_API_KEY, or LANGSMITH_API_KEY)"),
];

export function addOptions(command: Command, options: readonly Option[]): Command {
  for (const option of options) command.addOption(option);
  return command;
}

export const addServiceCommand = (parent: Command, name: string, description: string, options: readonly Option[]) =>
  addOptions(parent.command(name).description(description), [...options, ...TARGET_OPTIONS]);

/** @param load imports the function of the command when the command runs. The function gets the arguments, the flags and the target. */
export const serviceAction =
  (load: () => Promise<(...args: never[]) => Promise<void>>) =>
  async (...given: unknown[]): Promise<void> => {
    // Commander passes the arguments, the flags and the command object, which is dropped here.
    const args = given.slice(0, -1);
    const { url, apiKey } = args.at(-1) as { url: string; apiKey?: string };
    const api_key = apiKey || process.env.THREADMILL_API_KEY || process.env.LANGSMITH_API_KEY || undefined;
    try {
      await (await load())(...([...args, { url, api_key }] as never[]));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      printError(error.message);
      process.exitCode = 1;
    }
  };

export const printError = (message: string): void => console.error(`error: ${message}`);

/** Parses the URL of the service. Removes `/api/v1`, which API clients include in their base URL. */
function serviceUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError("It must be a URL such as http://127.0.0.1:2024.");
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const n = Number(text);
    if (/^\d+$/.test(text) && n >= min && n <= max) return n;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** Aligns the columns of a table, whose first row is the header. */
export function formatTable(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  return lines.map((line) => line.trimEnd()).join("\n");
}
