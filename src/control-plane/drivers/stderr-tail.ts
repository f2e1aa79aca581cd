import { readLogLine } from "./log-line.ts";

const MAX_LINES = 5;
const MAX_LENGTH = 1_000;

/** The last of what a program wrote, for the one who wants to know why it ended. Empty when it said nothing. */
export function lastWordsOf(lines: readonly string[]): string {
  const said = lines.map((line) => readLogLine(line, 0)?.message ?? "").filter((line) => line !== "");
  return said.slice(-MAX_LINES).join("\n").slice(-MAX_LENGTH);
}
