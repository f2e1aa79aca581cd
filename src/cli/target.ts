import { type Command, InvalidArgumentError, Option } from "commander";
import type { Target } from "./experiments/api.ts";
import { CommandError } from "./experiments/command-error.ts";

/** Which service a command asks, and with which key. */
export interface TargetFlags {
  url: string;
  apiKey?: string;
}

const TARGET_OPTIONS = [
  new Option("--url <url>", "address of the service").default("http://127.0.0.1:2024").argParser(serviceUrl),
  new Option("--api-key <key>", "key of the service (or THREADMILL_API_KEY, or LANGSMITH_API_KEY)"),
];

export function addTargetOptions(command: Command): Command {
  for (const option of TARGET_OPTIONS) command.addOption(option);
  return command;
}

/** Says what went wrong, without a stack where it is not a mistake of ours. */
export async function told(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}

export const targetOf = ({ url, apiKey }: TargetFlags): Target => ({
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

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const n = Number(text);
    if (/^\d+$/.test(text) && n >= least && n <= most) return n;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
